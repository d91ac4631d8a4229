"""The other half of the Transformer: GPT, the encoder-decoder, generation.

Read `blocks` first, then `causal_lm`.
"""
