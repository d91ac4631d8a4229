"""Several devices and several processes that train one model.

Read `sharing` first, then `joining`.
"""
