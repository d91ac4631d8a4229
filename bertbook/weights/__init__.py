"""Files to tensors and back: published formats, names, saving and loading.

Read `pretrained` first, then `names`.
"""
