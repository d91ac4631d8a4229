"""One BERT in nine files, as the book builds it.

Read `tokenizer` first, then what follows in the order of the chapters:
`vocabulary`, `embeddings`, `attention`, `block`, `bert`, `weights`,
`pretraining`, `tasks`. They need Keras, NumPy and safetensors, and nothing else
of `bertbook`. The same model, fast and with every option, is `bertbook/model`.
"""
