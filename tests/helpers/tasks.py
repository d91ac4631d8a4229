"""What several tests of fine-tuning share: tasks of a word or two."""

import numpy as np

from bertbook.finetuning.finetune import FinetuningOptions, evaluate, finetune
from bertbook.tasks.labels import SEVERAL_LABELS
from tests.helpers.toys import make

ROWS = 24


def draw_texts(seed=0, letters="abcdefgh"):
    rng = np.random.default_rng(seed)
    return [
        " ".join(rng.choice(list(letters), rng.integers(2, 7)))
        for _ in range(ROWS)
    ]


def opinions():
    """y is good, n is bad."""
    label = ["good", "bad"] * (ROWS // 2)
    words = {"good": "y", "bad": "n"}
    text = [
        f"{text} {words[name]} {text}"
        for text, name in zip(draw_texts(), label, strict=True)
    ]
    return {"text": text, "label": label}


def topics():
    """x and y stand for a topic each."""
    label = [[], ["s"], ["t"], ["s", "t"]] * (ROWS // 4)
    text = [
        " ".join([text, *("x" for n in row if n == "s")]
                 + [*("y" for n in row if n == "t")])
        for text, row in zip(draw_texts(), label, strict=True)
    ]  # fmt: skip
    return {"text": text, "label": label}


def grades():
    """u, v and w are worth 0, 1 and 2."""
    label = [0.0, 1.0, 2.0] * (ROWS // 3)
    text = [
        f"{'uvw'[int(value)]} {text}"
        for text, value in zip(draw_texts(), label, strict=True)
    ]
    return {"text": text, "label": label}


def pairs():
    """The second text says it."""
    data = opinions()
    return {
        "text": draw_texts(1),
        "text_pair": data["text"],
        "label": [int(name == "good") for name in data["label"]],
    }


def choices():
    """The one with y goes on."""
    label = [0, 1, 2] * (ROWS // 3)
    texts = draw_texts()
    return {
        "text": texts,
        "choices": [
            [f"{text} {'y' if i == right else 'n'}" for i in range(3)]
            for text, right in zip(draw_texts(1), label, strict=True)
        ],
        "label": label,
    }  # fmt: skip


def questions():
    """The answer is x and what follows."""
    contexts = [
        f"{text} x {'yz'[i % 2]} {text}" for i, text in enumerate(draw_texts())
    ]
    return {
        "id": [str(i) for i in range(ROWS)],
        "question": ["w ?"] * ROWS,
        "context": contexts,
        "answers": [
            [{"text": text[i : i + 3], "answer_start": i}]
            for text in contexts
            for i in [text.index("x")]
        ],
    }


def tags():
    """p is a person, q its second name, r a place."""
    kinds = {"p": "B-PER", "q": "I-PER", "r": "B-LOC"}
    tokens = [
        [*text.split(), "p", *["q"] * (i % 2), "r", "a"]
        for i, text in enumerate(draw_texts())
    ]
    return {
        "tokens": tokens,
        "tags": [[kinds.get(word, "O") for word in row] for row in tokens],
    }


CLASSIFIER = "BertForSequenceClassification"
TASKS = {
    "one label": (CLASSIFIER, {}, opinions, "accuracy"),
    "several labels": (
        CLASSIFIER, {"problem_type": SEVERAL_LABELS}, topics, "f1"
    ),
    "a number": (CLASSIFIER, {"num_labels": 1}, grades, "pearson"),
    "pairs": (CLASSIFIER, {}, pairs, "accuracy"),
    "a choice": ("BertForMultipleChoice", {}, choices, "accuracy"),
    "answers": ("BertForQuestionAnswering", {}, questions, "f1"),
    "tags": ("BertForTokenClassification", {"num_labels": 5}, tags, "f1"),
}  # fmt: skip


def learn(name, is_long=False, packed=False, **options):
    """Asserts that the loss of a task falls to zero.

    Args:
        name: One of `TASKS`.
        is_long: Whether it takes 180 steps, else 20 of all rows.
        packed: As in `FinetuningOptions`.
        **options: Those of `make`.

    Returns:
        The model, and its main metric on what it has learned.
    """
    kind, usual, data, metric = TASKS[name]
    model, data = make(kind, **usual, **options), data()
    history = finetune(
        model,
        data,
        epochs=60 if is_long else 20,
        learning_rate=1e-2 if is_long else 3e-2,
        batch_size=8 if is_long else ROWS,
        options=FinetuningOptions(packed=packed, verbose=False),
    )
    found = evaluate(model, data)
    print(f"{name}: loss {history['loss'][-1]}, {found}")
    assert np.isfinite(history["loss"]).all()
    assert history["loss"][-1] < 0.05 < 0.1 < history["loss"][0]
    return model, found[metric]
