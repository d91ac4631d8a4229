"""Pictures and viewers of the chapters.

Read `charts` first, then `viewers`.
"""
