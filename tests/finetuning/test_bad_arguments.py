"""Arguments of every wrong kind are refused by name, before work begins."""

import dataclasses
import math

import numpy as np
import pytest

import bertbook as bb
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
    "learning_rate": ["five"],
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
    "layer_decay": [],
    "patience": ["None", "five", "huge"],
    "evaluation_steps": ["None", "five", "huge"],
    "checkpoint_steps": ["five", "huge"],
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


def cases(table):
    """Returns arguments and odd values that are wrong there."""
    return [
        pytest.param(argument, kind, id=f"{argument} is {kind}")
        for argument, right in table.items()
        for kind in ODD
        if kind not in right
    ]


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


@pytest.mark.parametrize(("argument", "kind"), cases(FINETUNE))
def test_finetune_refuses(argument, kind, model):
    arguments = {"model": model, "train": DATA, "dev": DATA}
    weights = model.get_weights()
    arguments[argument] = ODD[kind]
    check_refusal(argument, lambda: bb.finetune(**arguments))
    pairs = zip(weights, model.get_weights(), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(("argument", "kind"), cases(OPTIONS))
def test_options_refuse(argument, kind):
    check_refusal(
        argument, lambda: bb.FinetuningOptions(**{argument: ODD[kind]})
    )


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("clip_norm", 0),  # nothing would be learned
        ("clip_norm", 1e-60),  # 0 in float32
        ("clip_norm", math.inf),
        ("weight_decay", math.inf),
        ("weight_decay", 1e300),  # infinite in float32
        ("warmup", math.inf),
        ("layer_decay", 1.5),
    ],
)
def test_options_refuse_numbers_that_teach_nothing(argument, value):
    check_refusal(argument, lambda: bb.FinetuningOptions(**{argument: value}))


def test_the_options_of_the_table_are_all_there_are():
    names = {field.name for field in dataclasses.fields(bb.FinetuningOptions)}
    assert names - {"frozen_layers"} == OPTIONS.keys()


@pytest.mark.parametrize("kind", [k for k in ODD if k != "None"])
def test_finetune_refuses_frozen_layers(kind, model):
    options = bb.FinetuningOptions(frozen_layers=ODD[kind])
    check_refusal(
        "frozen_layers", lambda: bb.finetune(model, DATA, options=options)
    )


@pytest.mark.parametrize("rate", [0, -1e-5, math.inf, 1e-60, 1e60])
def test_finetune_refuses_a_rate_that_is_0_or_infinite_in_float32(rate, model):
    check_refusal(
        "learning_rate", lambda: bb.finetune(model, DATA, learning_rate=rate)
    )


@pytest.mark.parametrize(("argument", "kind"), cases(EVALUATE))
def test_evaluate_refuses(argument, kind, model):
    arguments = {"model": model, "data": DATA} | {argument: ODD[kind]}
    check_refusal(argument, lambda: bb.evaluate(**arguments))


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


@pytest.mark.parametrize(
    ("kind", "method", "argument", "value"),
    [
        pytest.param(*owner, *case.values, id=f"{owner[1]}: {case.id}")
        for owner, (_, table) in PREDICT.items()
        for case in cases(table)
    ],
)
def test_predictions_refuse(kind, method, argument, value, models):
    arguments = PREDICT[kind, method][0] | {argument: ODD[value]}
    if argument == "pairs":
        arguments["texts"] = ["a"]
    predict = getattr(models(kind), method)
    check_refusal(argument, lambda: predict(**arguments))


@pytest.mark.parametrize("owner", PREDICT, ids=lambda owner: owner[1])
def test_no_text_gives_no_prediction_and_bad_options_are_still_refused(
    owner, models
):
    columns, table = PREDICT[owner]
    predict = getattr(models(owner[0]), owner[1])
    empty = {name: [] for name in columns}
    assert len(predict(**empty)) == 0
    for argument in table.keys() - {"texts", "pairs", "choices"}:
        if argument not in columns:
            check_refusal(
                argument, lambda a=argument: predict(**empty | {a: "x"})
            )
