"""Ancestors and variants of BERT, a file for each model.

Read `variants` first. Chapters 52 and 62 use them; no room imports them.
"""
