"""What only the book needs: errata, notation, references.

Read `references` first.
"""
