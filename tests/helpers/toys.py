"""What several tests of tasks share: a small tokenizer, stand-ins of models."""

from types import SimpleNamespace

import bertbook as bb
from bertbook.config import BertConfig
from bertbook.runtime import keras
from bertbook.tasks.labels import ONE_LABEL
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS

LETTERS = [chr(i) for i in range(ord("a"), ord("z") + 1)]
PIECES = [*SPECIAL_TOKENS, *LETTERS, *(f"##{c}" for c in LETTERS), "?", "."]
TOY = Tokenizer(PIECES)


def toy_config(**options):
    """A config for the small vocabulary; its sizes are pairwise different."""
    sizes = {
        "vocab_size": len(PIECES),
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "max_position_embeddings": 17,
    }
    return BertConfig(**sizes | options)


def stand_in(num_labels=2, names=None, problem=ONE_LABEL, **options):
    """What a task asks of a model, without one."""
    id2label = None if names is None else dict(enumerate(names))
    return SimpleNamespace(
        config=toy_config(id2label=id2label),
        tokenizer=TOY,
        num_labels=num_labels if names is None else len(names),
        problem_type=problem,
        no_answer_threshold=None,
        **options,
    )


def make(kind, seed=1, dropout=0.0, **options):
    """A BERT that is trained in a second."""
    keras.utils.set_random_seed(seed)
    config = toy_config(
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=1,
        max_position_embeddings=24,
        initializer_range=0.1,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    config = config.replace(num_hidden_layers=options.pop("layers", 1))
    model = getattr(bb, kind)(config, **options)
    model.tokenizer = TOY
    return model
