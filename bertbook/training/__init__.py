"""Losses, optimizers, checkpoints and logs of any training run.

Read `losses` first, then `optimizers`.
"""
