"""Sphinx extension: which page comes before and after a chapter.

Exercises and solutions stand below their chapter in the contents. From a
chapter the reader goes on to the next chapter all the same, and from the
exercises to the solutions.
"""

import book


def neighbors(name):
    """Returns the chapters before and after one, None at the ends."""
    names = [chapter.name for chapter in book.chapters()]
    place = names.index(name)
    before = names[place - 1] if place else None
    after = names[place + 1] if place + 1 < len(names) else None
    return before, after


def set_neighbors(app, page, _template, context, _doctree):
    """Sets `prev` and `next` of a chapter's page."""
    folder, _, name = page.rpartition("/")
    if folder != "notebooks":
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
