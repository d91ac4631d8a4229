"""A browser for all tests of the site, and pages with planted faults."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

import pytest
from playwright.sync_api import sync_playwright

from tests.site import browser as site

NUMBERS = count()  # no two planted pages have the same name


@pytest.fixture(scope="session")
def browser():
    """Chromium; it closes when the tests end."""
    with sync_playwright() as playwright:
        found = site.launch(playwright)
        yield found
        found.close()


@pytest.fixture(scope="session")
def phone(browser):
    """A context as wide as a phone, in the light scheme."""
    context = browser.new_context(viewport=site.PHONE, color_scheme="light")
    yield context
    context.close()


@pytest.fixture
def desk(browser):
    """A tab on a desk, at no page yet."""
    context = browser.new_context(viewport=site.DESK, color_scheme="light")
    yield context.new_page()
    context.close()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and writes no line for each."""

    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture(scope="module")
def server():
    """Serves the site to this machine alone, and gives its address."""
    handler = partial(QuietHandler, directory=site.HTML)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        thread = Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


@pytest.fixture
def planted():
    """Writes a copy of a page with a change, which is removed afterwards."""
    written = []

    def plant(page, old, new):
        path = site.HTML / page
        text = path.read_text("utf-8")
        assert old in text, f"{old!r} is not in {page}"
        copy = path.with_name(f"planted_{next(NUMBERS)}_{path.name}")
        copy.write_text(text.replace(old, new, 1), "utf-8")
        written.append(copy)
        return copy.relative_to(site.HTML).as_posix()

    yield plant
    for path in written:
        path.unlink()
