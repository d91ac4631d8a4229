"""Sphinx extension: what the index of the search leaves out.

The first cell is the same in every notebook. A module has a page of its own,
which is found by its title.
"""

from docutils import nodes
from sphinx.domains.python import PythonDomain


class Python(PythonDomain):
    """The domain of Python, whose modules the search does not list."""

    def get_objects(self):
        """Yields every object, modules with the priority to hide them."""
        for *entry, priority in super().get_objects():
            yield *entry, -1 if entry[2] == "module" else priority


def leave_out_first_cells(_app, doctree):
    """Marks the cells that are folded as a whole for the index."""
    for cell in doctree.findall(nodes.container):
        if "tag_hide-cell" in cell["classes"]:
            cell["classes"].append("no-search")


def setup(app):
    """Connects the extension to Sphinx."""
    app.add_domain(Python, override=True)
    app.connect("doctree-read", leave_out_first_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
