"""What the tests of the site ask a browser, each as a list of faults.

Pages are opened from their files. Where `playwright install chromium` cannot be
had, the Chromium of the system serves.
"""

import os
import re
import shutil
from dataclasses import dataclass, field

import book

HTML = book.ROOT / "build" / "site" / "html"
AXE = HTML.parent / "testing" / "axe-core" / "axe.min.js"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
FOLDERS = "notebooks", "notebooks/exercises", "notebooks/solutions"
NOTEBOOKS = [  # the page of each, below HTML
    path.relative_to(book.ROOT).with_suffix(".html").as_posix()
    for folder in FOLDERS
    for pattern in ("*.ipynb", "labs/*.ipynb")
    for path in sorted((book.ROOT / folder).glob(pattern))
]
NAMES = "chromium", "chromium-browser", "google-chrome", "chrome"
# The sandbox of Chromium does not start for root, as in a container.
ARGUMENTS = ["--no-sandbox"] if getattr(os, "geteuid", int)() == 0 else []

OVERFLOWING = """() => {
  const page = document.documentElement;
  const faults = [];
  if (page.scrollWidth > innerWidth)
    faults.push(`the page is ${page.scrollWidth} wide`);
  const boxed = (node) => {
    for (let up = node; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX !== "visible" || style.position === "fixed")
        return true;
    }
    return false;
  };
  for (const node of document.querySelectorAll("main *")) {
    const box = node.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 1 && !boxed(node))
      faults.push(`${node.tagName}.${node.className} ends at ${box.right}`);
  }
  return faults;
}"""

MATH = """() => {
  const written = document.querySelectorAll("span.math, div.math").length;
  const drawn = document.querySelectorAll(
    ":is(span.math, div.math) mjx-container").length;
  const wrong = document.querySelectorAll("mjx-merror").length;
  const faults = [];
  if (drawn < written) faults.push(`${drawn} of ${written} formulas drawn`);
  if (wrong) faults.push(`${wrong} formulas with an error`);
  const article = document.querySelector("main").cloneNode(true);
  article.querySelectorAll("pre, code, .math").forEach((n) => n.remove());
  if (/\\$\\$|\\\\frac/.test(article.textContent)) faults.push("bare TeX");
  return [faults, written];
}"""

# What Tab must reach: all that can be used and is shown.
REACHABLE = """() => {
  const wanted =
    "a[href], button, input, select, textarea, summary, [tabindex]";
  let number = 0;
  for (const node of document.querySelectorAll(wanted)) {
    if (node.tabIndex < 0 || node.disabled || !node.checkVisibility({
      visibilityProperty: true, contentVisibilityAuto: true })) continue;
    if (node.closest("details:not([open])") &&
        !node.closest("summary")) continue;
    node.dataset.stop = number++;
  }
  return number;
}"""

FOCUS = """() => {
  const node = document.activeElement;
  const ringed = (one) => {
    const style = one && getComputedStyle(one);
    return one && (style.outlineStyle !== "none" && style.outlineWidth !== "0px"
      || style.boxShadow !== "none");
  };
  // The arrows of the contents carry the ring inside.
  const ring = ringed(node) || ringed(node.querySelector(".toctree-toggle"));
  const box = node.getBoundingClientRect();
  return {
    stop: node.dataset.stop,
    what: `${node.tagName}.${node.className} ${node.textContent.slice(0, 30)}`,
    body: node === document.body,
    visible: Boolean(ring) && box.width > 0,
  };
}"""

AXE_RUN = """() => axe.run(document, { resultTypes: ["violations"] }).then(
  (found) => found.violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ` + v.nodes.slice(0, 3).map((n) =>
      n.target.join(" ") + " " + (n.any[0] || n.all[0] || n.none[0] || {})
        .message).join("; ")))"""


@dataclass
class Visit:
    """What one page did when it was opened.

    Attributes:
        page: Its path below the site's folder.
        console: Errors and warnings in the console, and uncaught exceptions.
        outside: Addresses outside the site's folder that it asked for.
        missing: Files of the site that it asked for and that are not there.
        overflow: What runs out of the page on a phone.
        math: What is wrong with its formulas.
        formulas: How many formulas it has.
    """

    page: str
    console: list = field(default_factory=list)
    outside: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    overflow: list = field(default_factory=list)
    math: list = field(default_factory=list)
    formulas: int = 0


def launch(playwright):
    """Returns a browser: the one of the system, or playwright's own."""
    path = next(
        (found for name in NAMES if (found := shutil.which(name))), None
    )
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)


def pages():
    """Returns the paths of all pages of the site."""
    paths = (path.relative_to(HTML) for path in HTML.rglob("*.html"))
    return sorted(p.as_posix() for p in paths if p.parts[0] != "_static")


def address(page):
    """Returns the address of a page's file, with what follows `?` or `#`."""
    path = re.split("[?#]", page)[0]
    return (HTML / path).as_uri() + page.removeprefix(path)


def watch(tab, visit):
    """Lets a tab write into a visit what it says and asks for."""
    tab.on(
        "console",
        lambda said: (
            said.type in ("error", "warning")
            and visit.console.append(said.text)
        ),
    )
    tab.on("pageerror", lambda error: visit.console.append(str(error)))
    tab.on("request", lambda asked: _sort(asked.url, visit.outside))
    tab.on("requestfailed", lambda asked: visit.missing.append(asked.url))


def _sort(url, outside):
    own = HTML.as_uri() + "/"
    if not url.startswith((own, "data:", "blob:")):
        outside.append(url)


def visit(context, page):
    """Opens a page at the width of a phone, and says what happened.

    Args:
        context: A context of the browser.
        page: The path below the site's folder.
    """
    found = Visit(page)
    tab = context.new_page()
    watch(tab, found)
    tab.goto(address(page), wait_until="load")
    settle(tab)
    found.math, found.formulas = tab.evaluate(MATH)
    found.overflow = tab.evaluate(OVERFLOWING)
    tab.close()
    return found


def settle(tab):
    """Waits until formulas are drawn and fonts are there."""
    tab.evaluate(
        "async () => { if (window.MathJax && MathJax.startup)"
        " await MathJax.startup.promise; await document.fonts.ready; }"
    )


def walk(tab):
    """Presses Tab from the top to the end of a page.

    Returns:
        What Tab never reaches, and what shows no sign of its focus.
    """
    count = tab.evaluate(REACHABLE)
    reached, unseen = set(), []
    for _ in range(count + 20):
        tab.keyboard.press("Tab")
        focus = tab.evaluate(FOCUS)
        if focus["body"] or focus["stop"] in reached:
            break
        reached.add(focus["stop"])
        if not focus["visible"]:
            unseen.append(focus["what"])
    lost = [n for n in range(count) if str(n) not in reached]
    names = tab.evaluate(
        """(lost) => lost.map((n) => {
          const node = document.querySelector(`[data-stop="${n}"]`);
          return node.tagName + "." + node.className + " " +
            node.textContent.slice(0, 30); })""",
        lost,
    )
    return names, unseen


def accessibility(tab):
    """Returns the serious and critical faults that axe-core finds."""
    tab.add_script_tag(path=str(AXE))
    return tab.evaluate(AXE_RUN)
