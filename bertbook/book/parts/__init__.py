"""The parts of `mybert` that the reader writes, in the order of the book."""

from bertbook.book.parts import (
    attention,
    bert,
    block,
    embeddings,
    pretraining,
    tasks,
    text,
    weights,
)
from bertbook.book.parts.part import Part

PARTS: dict[str, Part] = {
    "split_words": text.SPLIT_WORDS,
    "match_longest": text.MATCH_LONGEST,
    "Tokenizer": text.TOKENIZER,
    "count_pairs": text.COUNT_PAIRS,
    "merge_pair": text.MERGE_PAIR,
    "train_vocabulary": text.TRAIN_VOCABULARY,
    "nearest": embeddings.NEAREST,
    "Embeddings": embeddings.EMBEDDINGS,
    "attention": attention.ATTENTION,
    "SelfAttention": attention.SELF_ATTENTION,
    "FeedForward": block.FEED_FORWARD,
    "Block": block.BLOCK,
    "Bert": bert.BERT,
    "BertForPreTraining": bert.BERT_FOR_PRETRAINING,
    "load": weights.LOAD,
    "fill_mask": weights.FILL_MASK,
    "masked_loss": pretraining.MASKED_LOSS,
    "mask_tokens": pretraining.MASK_TOKENS,
    "sentence_pairs": pretraining.SENTENCE_PAIRS,
    "pretraining_batch": pretraining.PRETRAINING_BATCH,
    "WarmupDecay": pretraining.WARMUP_DECAY,
    "pretrain": pretraining.PRETRAIN,
    "TextClassifier": tasks.TEXT_CLASSIFIER,
    "finetune": tasks.FINETUNE,
    "SpanModel": tasks.SPAN_MODEL,
    "best_span": tasks.BEST_SPAN,
}
