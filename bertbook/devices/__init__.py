"""Several devices and several processes that train one model.

`docs/architecture.md` says what is in which file.
"""
