"""The data side of the tasks: columns to examples, outputs to answers.

Read `base` first, then `text_tasks`.
"""
