"""Published and shipped data sets as columns.

Read `load` first, then `catalog`.
"""
