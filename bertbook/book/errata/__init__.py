"""The errata of the book's sources, each computed.

Read `erratum` first, then `register`.
"""
