"""The data side of the tasks: columns to examples, outputs to answers.

Read `text_tasks` first, then `base`.
"""
