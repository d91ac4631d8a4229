"""Masked words and next sentences: corpus, examples, stream, run.

Read `pretrain` first, then `examples`.
"""
