"""Ids to arrays: padding, length buckets, packing, feeding a training loop.

Read `rows` first, then `batching`.
"""
