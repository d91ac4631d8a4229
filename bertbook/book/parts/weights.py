"""Trained weights: `weights.py` of `mybert`."""

import re
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from bertbook.book.parts.bert import BATCH, SIZES
from bertbook.book.parts.part import Calls, Part, filled, numbers
from bertbook.plain import weights as plain

PIECES = ["[PAD]", "a", "[UNK]", "[CLS]", "[SEP]", "b", "[MASK]"]
_SHAPE = re.compile(r"shape=\(([\d, ]*)\)")


def _model(function: Any) -> Any:
    """Returns a model of one block, of the package that a function is of."""
    bert = sys.modules[function.__module__.replace("weights", "bert")]
    return bert.BertForPreTraining(bert.Bert(**SIZES | {"L": 1}))


@cache
def _folder(name: str) -> dict[str, np.ndarray]:
    """Returns tensors as a published folder has them."""
    model = _model(plain.load)
    model(BATCH)
    filled(model)
    tensors = {
        name: numbers(v.value).T if v.name == "kernel" else numbers(v.value)
        for name, v in plain.variables(model).items()
    }
    if name == "an older encoder":
        tensors = {
            key.removeprefix("bert.")
            .replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta"): one
            for key, one in tensors.items()
            if key.startswith("bert.")
        }
    if name == "more and less":
        tensors = dict(sorted(tensors.items())[3:])
        tensors |= {key: np.ones(2, "float32") for key in ("zz", "aa.x", "mm")}
    return {key: np.ascontiguousarray(one) for key, one in tensors.items()}


def _misfit(error: ValueError) -> str:
    """Returns how the shapes of an error of Keras differ."""
    shapes = [one.split(", ") for one in _SHAPE.findall(str(error))[:2]]
    turned = len(shapes) == 2 and shapes[0] == shapes[1][::-1]
    return "exchanged axes" if turned else "different shapes"


def _loaded(load: Any) -> Calls:
    """Loads three folders: a whole one, an encoder, one that fits badly."""
    module = sys.modules[load.__module__]
    model = _model(load)
    model(BATCH)

    def lists(model, name, kind=str):
        with tempfile.TemporaryDirectory() as folder:
            save_file(_folder(name), Path(folder, "model.safetensors"))
            try:
                found = load(model, kind(folder))
            except ValueError as error:
                if "shape" not in str(error):
                    raise
                what = "matrix" if "kernel" in str(error) else "table"
                words = f"a {what} and its variable have {_misfit(error)}"
                where = error.__traceback__
                raise ValueError(words).with_traceback(where) from None
        if found is None:
            return None
        if not isinstance(found, list | tuple) or len(found) != 2:
            raise TypeError("it must return two lists of names")
        return {
            "the kinds of the two": [type(one).__name__ for one in found],
            "the names that the folder lacks": found[0],
            "the names that the model lacks": found[1],
        }

    def loaded(name):
        for variable in model.variables:
            variable.assign(np.zeros(variable.shape))
        found = lists(model, name)
        values = {
            key: numbers(variable.value)
            for key, variable in module.variables(model).items()
        }
        return found and found | {"what was loaded": values}

    return {
        "a whole folder": partial(loaded, "whole"),
        "an older folder of an encoder": partial(loaded, "an older encoder"),
        "a folder with other tensors": partial(loaded, "more and less"),
        "a model that has not run": lambda: lists(_model(load), "whole", Path),
    }


ASSIGN = "own[name].assign(tensors[name].T if is_matrix else tensors[name])"
LOAD = Part(
    "weights",
    "24",
    attempt=_loaded,
    mistakes=(
        (
            "tensors[name].T if is_matrix else tensors[name]",
            "tensors[name]",
            "matrices are stored as (out, in), and a kernel is (in, out): "
            "transpose them",
        ),
        (
            "is_matrix = own[name].name",
            "is_matrix = own[name].shape != tensors[name].shape and "
            "own[name].name",
            "a square matrix fits both ways; it must be transposed like the "
            "others",
        ),
        (
            'is_matrix = own[name].name == "kernel"',
            "is_matrix = tensors[name].ndim == 2",
            "tables are transposed, too; only kernels are stored as (out, in)",
        ),
        (
            "tensors, own = read_tensors(folder), variables(model)",
            'tensors = load_file(Path(folder, "model.safetensors"))\n'
            "    own = variables(model)",
            "names of older files are not found: let `read_tensors` read them",
        ),
        (
            "    if not model.built:\n"
            '        model({name: np.zeros((1, 2), "int32") for name in '
            "BATCH})\n",
            "",
            "a model that has not run has no variables to fill: call it once "
            "on a batch of zeros",
        ),
        (
            "for name in own.keys() & tensors.keys():",
            "for name in own:",
            "a variable that the folder lacks must be left as it is, and named",
        ),
        (
            "for name in own.keys() & tensors.keys():",
            "for name in tensors:",
            "a tensor that the model lacks must be left out, and named",
        ),
        (
            ASSIGN,
            "pass",
            "nothing is put into the model: call `assign` of each variable",
        ),
        (
            "return sorted(own.keys() - tensors), sorted(tensors.keys() - own)",
            "return sorted(tensors.keys() - own), sorted(own.keys() - tensors)",
            "the two lists are the wrong way round: first what the folder "
            "lacks",
        ),
        (
            "return sorted(own.keys() - tensors), sorted(tensors.keys() - own)",
            "return list(own.keys() - tensors)[::-1], "
            "list(tensors.keys() - own)[::-1]",
            "the lists are not sorted",
        ),
        (
            "return sorted(own.keys() - tensors), sorted(tensors.keys() - own)",
            "return own.keys() - tensors, tensors.keys() - own",
            "it returns sets; return sorted lists",
        ),
        (
            "return sorted(own.keys() - tensors), sorted(tensors.keys() - own)",
            "return sorted(own.keys() - tensors)",
            "it must return two lists; the second has the tensors that the "
            "model lacks",
        ),
        (
            "return sorted(own.keys() - tensors), sorted(tensors.keys() - own)",
            "return sorted(own), sorted(tensors)",
            "all names are returned; return those that only one side has",
        ),
        (
            "return sorted(own.keys() - tensors), sorted(tensors.keys() - own)",
            "return [], []",
            "names that only one side has are not returned",
        ),
    ),
)


def _filled_in(fill_mask: Any) -> Calls:
    """Fills gaps with a model of random weights."""
    module = sys.modules[fill_mask.__module__]
    tokenizer = module.Tokenizer(PIECES)
    model = _model(fill_mask)
    model(BATCH)
    filled(model)

    def guesses(*arguments):
        found = fill_mask(model, tokenizer, *arguments)
        if found is None:
            return None
        return [
            (piece, float(numbers(np.asarray(score)))) for piece, score in found
        ]

    return {
        "`fill_mask(..., 'a [MASK] b', 3)`": partial(guesses, "a [MASK] b", 3),
        "the text '[MASK] a b a'": partial(guesses, "[MASK] a b a", 7),
        "the text 'a b [MASK] a [MASK]'": partial(
            guesses, "a b [MASK] a [MASK]"
        ),
    }


FILL_MASK = Part(
    "weights",
    "24",
    attempt=_filled_in,
    mistakes=(
        (
            "tokenizer([text])",
            "tokenizer(text)",
            "the tokenizer takes a list of texts, and reads a text alone "
            "letter by letter: write `tokenizer([text])`",
        ),
        (
            'model(batch)["mlm_logits"][0, mask]',
            "model(batch)[0, mask]",
            "the model returns a dictionary; take its `mlm_logits`",
        ),
        (
            "scores = ops.convert_to_numpy(ops.softmax(logits))",
            'scores = model(batch)["mlm_logits"]\n    scores = '
            "ops.convert_to_numpy(ops.softmax(scores, axis=1)[0, mask])",
            "softmax runs over the positions; let it run over the pieces",
        ),
        (
            '["mlm_logits"][0, mask]',
            '["mlm_logits"][0, 0]',
            "the scores are those of [CLS]; take those where [MASK] stands",
        ),
        (
            '["mlm_logits"][0, mask]',
            '["mlm_logits"][0, mask - 1]',
            "the scores are those of the token before [MASK]: [CLS] counts, "
            "too",
        ),
        (
            '["mlm_logits"][0, mask]',
            '["mlm_logits"][0, mask + 1]',
            "the scores are those of the token after [MASK]",
        ),
        (
            '["mlm_logits"][0, mask]',
            '["mlm_logits"][0, -1]',
            "the scores are those of the last token; take those where [MASK] "
            "stands",
        ),
        (
            'list(batch["input_ids"][0]).index(tokenizer.ids["[MASK]"])',
            "int(np.flatnonzero(batch['input_ids'][0] == "
            "tokenizer.ids['[MASK]'])[-1])",
            "of two [MASK] it takes the last; take the first",
        ),
        (
            "ops.softmax(logits)",
            "logits",
            "it returns scores; softmax makes them probabilities",
        ),
        (
            "ops.softmax(logits)",
            "ops.softmax(logits[None], axis=0)[0]",
            "softmax runs over an axis of length 1, and every probability is "
            "1; let it run over the pieces",
        ),
        (
            "ops.softmax(logits)",
            "ops.sigmoid(logits)",
            "sigmoid treats each piece by itself; softmax makes probabilities "
            "that sum to 1",
        ),
        (
            "return [(tokenizer.pieces[i], float(scores[i])) for i in best]",
            "return [(tokenizer.pieces[i], float(scores[i] / "
            "scores[best].sum())) for i in best]",
            "the probabilities of the best k sum to 1; all pieces count in "
            "softmax",
        ),
        (
            "np.argsort(-scores)[:k]",
            "np.argsort(scores)[:k]",
            "the worst pieces come out; the best must",
        ),
        (
            "np.argsort(-scores)[:k]",
            "np.argsort(scores)[-k:]",
            "the best of the k comes last; it must come first",
        ),
        (
            "np.argsort(-scores)[:k]",
            "np.argsort(-scores)[:5]",
            "`k` is not used",
        ),
        (
            "np.argsort(-scores)[:k]",
            "np.argsort(-scores)",
            "all pieces are returned; it must be the best k",
        ),
        (
            "(tokenizer.pieces[i], float(scores[i]))",
            "(i, float(scores[i]))",
            "it returns ids; it must return pieces: `tokenizer.pieces`",
        ),
        (
            "(tokenizer.pieces[i], float(scores[i]))",
            "(float(scores[i]), tokenizer.pieces[i])",
            "a pair is the wrong way round: first the piece, then its "
            "probability",
        ),
        (
            "return [(tokenizer.pieces[i], float(scores[i])) for i in best]",
            "return [tokenizer.pieces[i] for i in best]",
            "the probabilities are missing: return (piece, probability) pairs",
        ),
    ),
)
