"""Fine-tuning and evaluation of every task.

Read `finetune` first, then `run`.
"""
