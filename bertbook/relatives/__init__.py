"""Ancestors and variants of BERT, a file for each model.

Chapters 52 and 62 build them; nothing else imports them.
"""
