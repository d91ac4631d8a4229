"""BERT in Keras: from characters to a model that reads, answers and tags.

One legend of letters holds everywhere. In prose and shape comments they are
capitals; in `einsum` subscripts the same letters are lower case.

    B batch             D model width (`hidden_size`)
    S key positions     N attention heads (`num_attention_heads`)
    T query positions   H width of one head, H = D / N
    F feed-forward width (`intermediate_size`)
    L layers (`num_hidden_layers`)
    V vocabulary        M masked slots    K classes    C choices

`import bertbook` does no work: a name below is imported when it is first used,
so that the tokenizer needs no backend and nothing loads before `setup()`. It
only looks which backends are installed, and tells Keras where JAX is the one.
"""

import os
from importlib import import_module
from importlib.util import find_spec

_HOMES = {
    "AttentionViewer": "figures.viewers",
    "BertConfig": "config",
    "BertEncoder": "model.encoder",
    "BertForMaskedLM": "model.bert",
    "BertForMultipleChoice": "model.bert",
    "BertForPreTraining": "model.bert",
    "BertForQuestionAnswering": "model.bert",
    "BertForSequenceClassification": "model.bert",
    "BertForTokenClassification": "model.bert",
    "CausalLM": "decoder.causal_lm",
    "CausalLMConfig": "decoder.config",
    "Encoding": "text.tokenizer",
    "FinetuningOptions": "finetuning.finetune",
    "PretrainingRecipe": "pretraining.pretrain",
    "Seq2SeqConfig": "decoder.config",
    "Seq2SeqTransformer": "decoder.seq2seq",
    "SimilarityViewer": "figures.viewers",
    "Tokenizer": "text.tokenizer",
    "add_lora": "weights.lora",
    "attention_path": "model.attention",
    "evaluate": "finetuning.finetune",
    "fill_mask": "model.fill_mask",
    "finetune": "finetuning.finetune",
    "generate": "decoder.generate",
    "join_processes": "devices.joining",
    "load_dataset": "datasets.load",
    "merge_lora": "weights.lora",
    "pretrain": "pretraining.pretrain",
    "setup": "runtime",
    "train_dev_split": "datasets.own_files",
    "train_translation": "translation.train",
    "translate": "translation.translate",
}


def _name_only_jax():
    """Names JAX to Keras where it is the only backend.

    A later `import keras` looks for TensorFlow otherwise, and fails.
    """
    others = "tensorflow", "torch"
    if find_spec("jax") and not any(map(find_spec, others)):
        os.environ.setdefault("KERAS_BACKEND", "jax")


_name_only_jax()

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name):
    """Imports a public name, or a module of the package, on first use."""
    if name == "__version__":
        return import_module("bertbook.runtime").version()
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        try:
            value = import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(
                f"module 'bertbook' has no attribute {name!r}."
            ) from None
    globals()[name] = value
    return value


def __dir__():
    """Lists the public names without importing them."""
    return __all__
