"""Sphinx extension: which page comes before and after a chapter.

Labs, exercises and solutions stand below their chapter in the contents. From a
chapter the reader goes on to the next chapter all the same, from the last lab
of a chapter too, and from the exercises to the solutions.
"""

import book


def neighbors(name):
    """Returns what comes before and after a chapter or lab, None at the ends.

    Before and after a chapter come chapters; before a lab come its chapter and
    the labs of it.
    """
    names = [one.name for one in book.everything()]
    ahead, later = names[: names.index(name)], names[names.index(name) + 1 :]
    if book.Chapter(name).is_lab:
        return ahead[-1], next(iter(later), None)
    before = [one for one in ahead if not book.Chapter(one).is_lab]
    after = [one for one in later if not book.Chapter(one).is_lab]
    return next(reversed(before), None), next(iter(after), None)


def set_neighbors(app, page, _template, context, _doctree):
    """Sets `prev` and `next` of the page of a chapter or lab."""
    folder, _, name = page.partition("/")
    if folder != "notebooks" or not book.is_name(name):
        return
    for key, other in zip(("prev", "next"), neighbors(name), strict=True):
        if other:
            context[key] = link(app, page, f"{folder}/{other}")


def link(app, page, other):
    """Returns address and title of another page, as the theme wants them."""
    return {
        "link": app.builder.get_relative_uri(page, other),
        "title": app.builder.render_partial(app.env.titles[other])["title"],
    }


def setup(app):
    """Connects the extension to Sphinx."""
    app.connect("html-page-context", set_neighbors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
