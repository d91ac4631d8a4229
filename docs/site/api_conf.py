"""Sphinx settings of the API reference, which conf.py adds to its own.

`tools/book/` must be on the path: `api_pages` there is the extension. It
writes a page for each room and each module into `api/` of the source folder
when a build starts, links names such as `bb.finetune` in the prose and the
code of every page, and lists on each API page the chapters that use it. The
package is imported, so Keras and a backend must be installed.
"""

SETTINGS = {
    "extensions": [
        "sphinx.ext.autodoc",
        "sphinx.ext.napoleon",
        "sphinx.ext.linkcode",
        "api_pages",
    ],
    # The types stand beside the arguments, taken from the stub.
    "autodoc_typehints": "none",
    "autodoc_member_order": "bysource",
    "autodoc_inherit_docstrings": False,
    "autodoc_preserve_defaults": True,
    "add_module_names": False,
    "python_maximum_signature_line_length": 72,
    "python_trailing_comma_in_multi_line_signatures": False,
    "napoleon_numpy_docstring": False,
    "napoleon_use_rtype": True,
    "toc_object_entries_show_parents": "hide",
}
