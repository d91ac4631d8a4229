"""The other half of the Transformer: GPT, the encoder-decoder, generation.

Read `causal_lm` first, then `blocks`.
"""
