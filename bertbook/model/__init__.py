"""The layers of BERT and every model that ends in a head.

Read `encoder` first, then `attention` and `bert`.
"""
