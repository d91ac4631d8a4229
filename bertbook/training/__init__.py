"""The machinery of any run: losses, optimizers, checkpoints, logs.

Read `losses` first, then `optimizers`.
"""
