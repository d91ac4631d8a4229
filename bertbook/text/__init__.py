"""Characters to ids and back: tokenizers, vocabularies, sentences, tags.

Read `tokenizer` first, then `wordpiece`.
"""
