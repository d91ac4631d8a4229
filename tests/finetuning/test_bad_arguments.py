"""Arguments of every wrong kind are refused by name, before work begins."""

import dataclasses
import math

import numpy as np
import pytest

import bertbook as bb
from tests.helpers.runs import same
from tests.helpers.toys import TOY, make, toy_config

ODD = {
    "None": None,
    "five": 5,
    "a string": "x",
    "bytes": b"x",
    "a list": [1],
    "an array": np.zeros((1, 2)),
    "a dict": {},
    "an object": object(),
    "an empty string": "",
    "nan": math.nan,
    "huge": 10**400,
    "True": True,
}
DATA = {"text": ["a b", "b"], "label": [0, 1]}
# For each argument, the odd values that are right there.
FINETUNE = {
    "model": [],
    "train": [],
    "dev": ["None"],
    "epochs": ["five"],
    "learning_rate": ["five", "None"],
    "batch_size": ["five", "huge"],
    "max_length": ["None", "five", "huge"],
    "seed": ["five", "huge"],
    "out": ["None", "a string"],
    "options": ["None"],
    "class_weight": ["None", "a dict"],
    "callbacks": ["None"],
    "metrics": ["None", "a dict"],
}
OPTIONS = {
    "warmup": [],
    "weight_decay": ["five"],
    "clip_norm": ["None", "five"],
    "accumulation_steps": ["five", "huge"],
    "layer_decay": [],
    "patience": ["None", "five", "huge"],
    "evaluation_steps": ["None", "five", "huge"],
    "checkpoint_steps": ["None", "five", "huge"],
    "checkpoint_minutes": ["None", "five"],
    "stride": ["None", "five", "huge"],
    "strategy": [],
    "metric": ["None", "a string"],
    "packed": ["True"],
    "verbose": ["True"],
}
EVALUATE = {
    "model": [],
    "data": [],
    "max_length": ["None", "five", "huge"],
    "batch_size": ["five", "huge"],
    "stride": ["None", "five", "huge"],
    "metrics": ["None", "a dict"],
    "report": ["True"],
}
LENGTHS = {
    "max_length": ["None", "five", "huge"],
    "batch_size": ["five", "huge"],
    "verbose": ["True"],
}
WINDOWS = LENGTHS | {"max_length": ["None", "five"]}
PREDICT = {
    ("BertForSequenceClassification", "predict_texts"): (
        {"texts": ["a"], "pairs": ["b"]},
        {"texts": [], "pairs": ["None"], "all_scores": ["True"]} | LENGTHS,
    ),
    ("BertForMultipleChoice", "predict_choices"): (
        {"texts": ["a"], "choices": [["b", "c"]]},
        {"texts": [], "choices": [], "all_scores": ["True"]} | LENGTHS,
    ),
    ("BertForQuestionAnswering", "predict_answers"): (
        {"questions": ["a"], "contexts": ["b c"]},
        {
            "questions": [],
            "contexts": [],
            "stride": ["None", "five"],
            "max_answer_length": ["five", "huge"],
        }
        | WINDOWS,
    ),
    ("BertForTokenClassification", "predict_entities"): (
        {"texts": ["a"]},
        {"texts": []} | WINDOWS,
    ),
    ("BertEncoder", "embed_texts"): (
        {"texts": ["a"]},
        {"texts": [], "pooling": ["None"]} | LENGTHS,
    ),
}


def odd_values(table, argument):
    """Returns the odd values that are wrong for an argument."""
    return [value for kind, value in ODD.items() if kind not in table[argument]]


def check_refusal(argument, call):
    """Asserts that the error is ours and names the argument."""
    names = {
        "train": "`(train|data)`",
        "dev": "`(dev|data)`",
        "texts": r"`texts?(\[0\])?`",
        "questions": "`questions?`",
        "contexts": "`contexts?`",
    }
    with pytest.raises((ValueError, KeyError)) as caught:
        call()
    name = names.get(argument, rf"`{argument}(\[0\])*`")
    caught.match(f"{name} (must|needs)")
    caught.match("Received: ")
    assert "bertbook" in caught.traceback[-1].path.parts


@pytest.fixture(scope="module")
def model():
    return make("BertForSequenceClassification", id2label={0: "x", 1: "y"})


@pytest.mark.parametrize("argument", FINETUNE)
def test_finetune_refuses(argument, model):
    arguments = {"model": model, "train": DATA, "dev": DATA}
    before = model.get_weights()
    for value in odd_values(FINETUNE, argument):
        check_refusal(
            argument,
            lambda value=value: bb.finetune(**arguments | {argument: value}),
        )
    assert same(before, model.get_weights())


@pytest.mark.parametrize("argument", OPTIONS)
def test_options_refuse(argument):
    for value in odd_values(OPTIONS, argument):
        check_refusal(
            argument,
            lambda value=value: bb.FinetuningOptions(**{argument: value}),
        )


def test_options_refuse_numbers_that_teach_nothing():
    for argument, value in (
        ("clip_norm", 0),  # nothing would be learned
        ("clip_norm", 1e-60),  # 0 in float32
        ("clip_norm", math.inf),
        ("weight_decay", math.inf),
        ("weight_decay", 1e300),  # infinite in float32
        ("warmup", math.inf),
        ("layer_decay", 1.5),
    ):
        check_refusal(
            argument,
            lambda a=argument, v=value: bb.FinetuningOptions(**{a: v}),
        )


def test_the_options_of_the_table_are_all_there_are():
    names = {field.name for field in dataclasses.fields(bb.FinetuningOptions)}
    assert names - {"frozen_layers"} == OPTIONS.keys()


def test_finetune_refuses_frozen_layers(model):
    for value in odd_values({"frozen_layers": ["None"]}, "frozen_layers"):
        options = bb.FinetuningOptions(frozen_layers=value)
        check_refusal(
            "frozen_layers",
            lambda options=options: bb.finetune(model, DATA, options=options),
        )


def test_finetune_refuses_a_rate_that_is_0_or_infinite_in_float32(model):
    for rate in (0, -1e-5, math.inf, 1e-60, 1e60):
        check_refusal(
            "learning_rate",
            lambda rate=rate: bb.finetune(model, DATA, learning_rate=rate),
        )


@pytest.mark.parametrize("argument", EVALUATE)
def test_evaluate_refuses(argument, model):
    arguments = {"model": model, "data": DATA}
    for value in odd_values(EVALUATE, argument):
        check_refusal(
            argument,
            lambda value=value: bb.evaluate(**arguments | {argument: value}),
        )


@pytest.fixture(scope="module")
def models(model):
    made = {"BertForSequenceClassification": model}

    def get(kind):
        if kind not in made:
            encoder = kind == "BertEncoder"
            made[kind] = bb.BertEncoder(toy_config()) if encoder else make(kind)
            made[kind].tokenizer = TOY
        return made[kind]

    return get


@pytest.mark.parametrize("owner", PREDICT, ids=lambda owner: owner[1])
def test_predictions_refuse(owner, models):
    """No text gives no prediction, and bad options are still refused."""
    columns, table = PREDICT[owner]
    predict = getattr(models(owner[0]), owner[1])
    for argument in table:
        arguments = columns
        if argument == "pairs":
            arguments = columns | {"texts": ["a"]}
        for value in odd_values(table, argument):
            check_refusal(
                argument,
                lambda a=argument, v=value, given=arguments: predict(
                    **given | {a: v}
                ),
            )
    empty = {name: [] for name in columns}
    assert len(predict(**empty)) == 0
    for argument in table.keys() - {"texts", "pairs", "choices"}:
        if argument not in columns:
            check_refusal(
                argument, lambda a=argument: predict(**empty | {a: "x"})
            )
