"""What only the book needs: errata, notation, workbench.

Read `workbench` first.
"""
