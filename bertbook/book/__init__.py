"""What only the book needs: the workbench, errata, notation, references.

Read `workbench` first.
"""
