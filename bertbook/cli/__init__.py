"""The commands of `python -m bertbook`.

Read `main` first.
"""
