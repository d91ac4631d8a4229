"""Light, dark or as the system has it: chosen once, kept on all pages."""

import pytest

from tests.site import browser as site

FRONT = "index.html"
CHAPTER = "notebooks/21_several_heads.html"
BUTTON = "button.theme-switch-button:visible"
MENU = ".theme-switch-container .dropdown-menu:visible"

# Of the text and the ground of an element: 4.5 is enough for small text.
CONTRAST = """(node) => {
  const light = (color) => {
    const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92
        : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  let ground = node;
  const clear = (one) =>
    /[,/] 0\\)$/.test(getComputedStyle(one).backgroundColor);
  while (ground.parentElement && clear(ground)) ground = ground.parentElement;
  const both = [
    light(getComputedStyle(node).color),
    light(getComputedStyle(ground).backgroundColor),
  ];
  return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
}"""
GROUND = """(image) => {
  const style = getComputedStyle(image);
  return `${style.filter} ${style.backgroundColor}`;
}"""


def opened(tab, page):
    """Opens a page in a tab, and returns the tab."""
    tab.goto(site.address(page))
    site.settle(tab)
    return tab


def choose(tab, mode):
    """Chooses a scheme in the menu of the page."""
    tab.locator(BUTTON).click()
    tab.locator(f"{MENU} [data-mode={mode}]").click()


def scheme(tab):
    """Returns the scheme that a page shows."""
    return tab.evaluate("document.documentElement.dataset.theme")


def unreadable(tab):
    """Returns what cannot be read in pictures and viewers."""
    found = []
    for token in tab.locator(".bertbook-viewer .token").all():
        contrast = token.evaluate(CONTRAST)
        if contrast < 4.5:
            found.append(f"{token.text_content()}: {contrast:.1f}")
    for picture in tab.locator("figure img").all():
        ground = picture.evaluate(GROUND)
        if ground != "none rgb(255, 255, 255)":
            found.append(f"picture: {ground}")
    return found


@pytest.mark.parametrize("mode", ["dark", "light"])
def test_a_choice_is_kept_on_the_next_page(desk, mode):
    other = {"dark": "light", "light": "dark"}[mode]
    desk.emulate_media(color_scheme=other)
    choose(opened(desk, FRONT), mode)
    assert scheme(desk) == mode
    desk.locator(".bd-sidebar-primary a", has_text="21 Several heads").click()
    desk.wait_for_url(site.address(CHAPTER))
    assert scheme(desk) == mode
    assert desk.locator(".bertbook-viewer .token").count() > 20
    assert unreadable(desk) == []


def test_auto_goes_with_the_system_again(desk):
    choose(opened(desk, FRONT), "dark")
    choose(desk, "auto")
    assert scheme(opened(desk, CHAPTER)) == "light"
    desk.emulate_media(color_scheme="dark")
    desk.wait_for_function("document.documentElement.dataset.theme == 'dark'")


@pytest.mark.parametrize("by", ["keys", "mouse"])
def test_keys_choose_a_scheme_and_close_the_menu(desk, by):
    button = opened(desk, FRONT).locator(BUTTON)
    if by == "keys":
        button.press("Enter")
    else:
        button.click()
        desk.mouse.move(0, 0)  # the menu stays open below the mouse
    desk.locator(MENU).wait_for()
    desk.keyboard.press("Escape")
    assert desk.locator(MENU).count() == 0
    desk.keyboard.press("Enter")
    for _ in range(3):
        desk.keyboard.press("ArrowDown")
    desk.keyboard.press("Enter")
    assert scheme(desk) == "dark"


def test_a_page_that_forgets_the_choice_is_seen(desk, planted):
    page = planted(CHAPTER, 'localStorage.getItem("mode")', "null")
    choose(opened(desk, FRONT), "dark")
    assert scheme(opened(desk, page)) == "light"


@pytest.mark.parametrize(
    ("style", "told"),
    [
        (".token{color:#555 !important}", "they: "),
        ("figure img{background:none !important}", "picture: "),
    ],
)
def test_what_cannot_be_read_is_seen(desk, planted, style, told):
    page = planted(CHAPTER, "</body>", f"<style>{style}</style></body>")
    choose(opened(desk, page), "dark")
    assert any(one.startswith(told) for one in unreadable(desk))
