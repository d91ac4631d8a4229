"""Sentence pairs, the run that trains a translator, BLEU.

Read `translate` first, then `train`.
"""
