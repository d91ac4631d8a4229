"""Links of the built pages: inside the site, and to other hosts."""

from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from tests.site.browser import HTML, pages

# Hosts that a link may lead to; no page asks one for anything by itself.
HOSTS = {
    "aclanthology.org",
    "arxiv.org",
    "beam.apache.org",
    "colab.research.google.com",
    "d2l.ai",
    "doi.org",
    "filesystem-spec.readthedocs.io",
    "github.com",
    "jmlr.org",
    "keepachangelog.com",
    "mccormickml.com",
    "semver.org",
    "techcrunch.com",
    "www.jstor.org",
    "www.lesswrong.com",
}
# Elements that a browser fetches without being asked.
FETCHED = {"audio", "embed", "iframe", "img", "link", "script", "source"}


class Page(HTMLParser):
    """Collects the ids, the links and the fetched files of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched = set(), [], []
        self.relations = {}  # such as "next", and where they lead
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}
        target = values.get("href") or values.get("src")
        if tag == "link" and values.get("rel") in ("next", "prev"):
            self.relations.setdefault(values["rel"], []).append(target)
        if target and not target.startswith(("data:", "mailto:")):
            (self.fetched if tag in FETCHED else self.links).append(target)


@cache
def read(path):
    """Returns what a page holds."""
    return Page(path.read_text("utf-8"))


def faults(path):
    """Returns the links of a page that lead nowhere, or to an unknown host."""
    page = read(path)
    found = [f"fetched: {one}" for one in page.fetched if urlsplit(one).netloc]
    for target in dict.fromkeys(page.links + page.fetched):
        host = urlsplit(target).hostname
        if host and host not in HOSTS:
            found.append(f"host not in the list: {target}")
        elif not host and not leads_somewhere(target, path):
            found.append(f"dead: {target}")
    return found


def leads_somewhere(target, path):
    """Tells whether a link inside the site has its file and its place."""
    parts = urlsplit(target)
    to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not to.is_file() or not to.is_relative_to(HTML.resolve()):
        return False
    fragment = unquote(parts.fragment)
    return not fragment or to.suffix != ".html" or fragment in read(to).ids


def outside():
    """Returns every address outside the site that a page links to."""
    return sorted(
        {
            target
            for page in pages()
            for target in read(HTML / page).links
            if urlsplit(target).netloc
        }
    )
