"""Ids to arrays: padding, length buckets, packing, feeding a training loop.

Read `ragged` first, then `batching`.
"""
