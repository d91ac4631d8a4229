"""Attention: `attention.py` of `mybert`."""

from functools import partial
from typing import Any

import numpy as np

from bertbook.book.parts.part import (
    Calls,
    Part,
    filled,
    numbers,
    of_tensorflow,
    squares,
)
from bertbook.runtime import keras

RNG = np.random.default_rng(0)


def _drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


# T = 3 queries, S = 5 keys; H = 4, and values of width 6.
QUERY, KEY, VALUE = 2 * _drawn(3, 4), _drawn(5, 4), _drawn(5, 6)
HEADS = _drawn(2, 2, 3, 4), _drawn(2, 2, 5, 4), _drawn(2, 2, 5, 4)
VISIBLE = np.array([1, 1, 1, 0, 0], "int32")
EACH = np.array([[1, 0, 0, 1, 0], [0, 1, 1, 1, 1], [0, 0, 1, 1, 0]], "int32")
ROWS = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], "int32")


def _attended(attention: Any) -> Calls:
    """Calls the function in the ways that the book does."""

    def both(*arguments):
        found = attention(*arguments)
        if found is None:
            return None
        if not isinstance(found, list | tuple) or len(found) != 2:
            raise TypeError("it must return two things: mixed, weights")
        return [numbers(one) for one in found]

    def weights(*arguments):
        found = both(*arguments)
        return found and found[1]

    def mixed(*arguments):
        found = both(*arguments)
        return found and found[0]

    heads = (*HEADS, ROWS[:, None, None, :])
    given = QUERY, KEY, VALUE
    unknown = keras.Input(batch_shape=(None, None, 4))
    return {
        "the weights": partial(weights, *given),
        "the mixed vectors": partial(mixed, *given),
        "the weights with a mask of shape (S,)": partial(
            weights, *given, VISIBLE
        ),
        "the weights with a mask of shape (T, S)": partial(
            weights, *given, EACH
        ),
        "the weights with a mask of booleans": partial(
            weights, *given, EACH == 1
        ),
        "the mixed vectors with a mask": partial(mixed, *given, EACH),
        "the weights of two texts with two heads each": partial(
            weights, *heads
        ),
        "the mixed vectors of two texts with two heads each": partial(
            mixed, *heads
        ),
        "the mixed vectors with a `drop`": partial(
            mixed, *given, None, squares
        ),
        "the shapes where B and S are not known": lambda: [
            str(one.shape) for one in attention(unknown, unknown, unknown)
        ],
    }


ATTENTION = Part(
    "attention",
    "20",
    attempt=_attended,
    mistakes=(
        (
            "scores = scores / math.sqrt(query.shape[-1])",
            "pass",
            "the scores are not divided by the root of the width H",
        ),
        (
            "math.sqrt(query.shape[-1])",
            "query.shape[-1]",
            "the scores are divided by the width H, not by its root",
        ),
        (
            "/ math.sqrt(query.shape[-1])",
            "* math.sqrt(query.shape[-1])",
            "the scores are multiplied by the root of H; divide them",
        ),
        (
            "math.sqrt(query.shape[-1])",
            "8",
            "the scores are divided by 8, which is the root of 64; divide by "
            "the root of H",
        ),
        (
            "ops.swapaxes(key, -1, -2)",
            "ops.transpose(key)",
            "`ops.transpose` reverses all axes; swap the last two, with "
            "`ops.swapaxes(key, -1, -2)`",
        ),
        (
            "if mask is not None:",
            "if True:",
            "`mask` may be None; use it only where it is not",
        ),
        (
            "query.shape[-1]",
            "key.shape[-2]",
            "the scores are divided by the root of the number of keys; it must "
            "be that of the width H",
        ),
        (
            "query.shape[-1]",
            "query.shape[-2]",
            "the scores are divided by the root of the number of queries; it "
            "must be that of the width H",
        ),
        (
            "query.shape[-1]",
            "value.shape[-1]",
            "the scores are divided by the root of the width of `value`; it "
            "must be that of `query` and `key`",
        ),
        (
            "ops.softmax(scores)",
            "ops.softmax(scores, axis=-2)",
            "softmax runs over the queries; let it run over the keys, the last "
            "axis, so that each row sums to 1",
        ),
        (
            "ops.softmax(scores)",
            "ops.softmax(scores, axis=1)",
            "softmax runs over axis 1, which is that of the keys only in a "
            "single head; take the last axis, -1",
        ),
        (
            "ops.softmax(scores)",
            "scores",
            "softmax is missing: the weights are the scores themselves",
        ),
        (
            "ops.softmax(scores)",
            "ops.sigmoid(scores)",
            "sigmoid weighs each key by itself; softmax makes each row sum to "
            "1",
        ),
        (
            "ops.softmax(scores)",
            "ops.exp(scores)",
            "the exponentials are not divided by their sum",
        ),
        (
            "scores = scores / math.sqrt(query.shape[-1])\n"
            "    if mask is not None:\n"
            '        scores = ops.where(ops.cast(mask, "bool"), scores, '
            "-10_000.0)\n"
            "    weights = ops.softmax(scores)",
            "if mask is not None:\n"
            '        scores = ops.where(ops.cast(mask, "bool"), scores, '
            "-10_000.0)\n"
            "    weights = ops.softmax(scores) / math.sqrt(query.shape[-1])",
            "the weights are divided by the root of H; divide the scores, "
            "before softmax",
        ),
        (
            "if mask is not None:",
            "if False:",
            "the mask is not used",
        ),
        (
            'ops.cast(mask, "bool")',
            'ops.logical_not(ops.cast(mask, "bool"))',
            "the mask is the wrong way round: 1 means that the query may look",
        ),
        (
            "-10_000.0",
            "0.0",
            "hidden scores become 0, and softmax gives a score of 0 some "
            "weight; make them very negative",
        ),
        (
            "-10_000.0",
            "-1.0",
            "hidden keys still get some weight; -1 is not negative enough",
        ),
        (
            "-10_000.0",
            "10_000.0",
            "hidden scores become very large; make them very negative",
        ),
        (
            'scores = ops.where(ops.cast(mask, "bool"), scores, -10_000.0)\n'
            "    weights = ops.softmax(scores)",
            "pass\n"
            "    weights = ops.softmax(scores)\n"
            "    if mask is not None:\n"
            '        weights = weights * ops.cast(mask, "float32")',
            "the mask comes after softmax, and the rows no longer sum to 1; "
            "hide scores, before softmax",
        ),
        (
            "return ops.matmul(weights, value), weights",
            "return weights, ops.matmul(weights, value)",
            "the results are the wrong way round: first the mixed vectors, "
            "then the weights",
        ),
        (
            "return ops.matmul(weights, value), weights",
            "return ops.matmul(weights, value)",
            "it must return two things: the mixed vectors and the weights",
        ),
        (
            "return ops.matmul(weights, value), weights",
            "return ops.matmul(weights, value), scores",
            "the second result is the scores; it must be the weights, after "
            "softmax",
        ),
        (
            "ops.matmul(weights, value)",
            "ops.matmul(weights, key)",
            "the keys are mixed; `value` must be",
        ),
        (
            "ops.matmul(weights, value)",
            "ops.sum(weights[..., None] * value[..., None, :, :], axis=-3)",
            "the sum runs over the queries; it must run over the keys",
        ),
        (
            "if drop is not None:",
            "if False:",
            "`drop` is not used",
        ),
        (
            "    if drop is not None:\n"
            "        weights = drop(weights)\n"
            "    return ops.matmul(weights, value), weights",
            "    mixed = ops.matmul(weights, value)\n"
            "    return mixed if drop is None else drop(mixed), weights",
            "`drop` is given the mixed vectors; it must drop weights",
        ),
        (
            "weights = ops.softmax(scores)  # each row sums to 1\n"
            "    if drop is not None:\n"
            "        weights = drop(weights)",
            "weights = ops.softmax(scores if drop is None else drop(scores))",
            "`drop` is given the scores; it must drop weights",
        ),
    ),
)

X = _drawn(2, 5, 8)  # B = 2, S = 5, D = 8
MASK = ROWS


def _layer_results(layer_class: Any) -> dict[str, Any] | None:
    """Fills a layer and runs it: in use, on padding, with odd dropout."""
    layer = layer_class(8, 2, 0.5)
    first = layer(X, np.ones_like(MASK))
    if first is None or layer.heads(X) is None:
        return None
    shapes = filled(layer)
    results: dict[str, Any] = {
        "its weights": shapes,
        "their order": list(shapes),
        "`heads`": numbers(layer.heads(X)),
        "without padding": numbers(layer(X, np.ones_like(MASK))),
        "with padding": numbers(layer(X, MASK)),
    }
    trained = numbers(layer(X, MASK, training=True))
    unknown = keras.Input(batch_shape=(None, None, 8))
    visible = keras.Input(batch_shape=(None, None), dtype="int32")
    results["its shape where B and S are not known"] = str(
        layer(unknown, visible).shape
    )
    results["the same in training"] = bool(
        np.allclose(trained, results["with padding"])
    )
    layer.dropout = squares
    results["with squares in place of dropout"] = numbers(layer(X, MASK))
    return results


SELF_ATTENTION = Part(
    "attention",
    "21",
    attempt=lambda layer_class: {"": partial(_layer_results, layer_class)},
    mistakes=(
        *of_tensorflow(
            "B, S, D = ops.shape(x)",
            "B, S, D = x.shape",
            "while Keras trains, B and S are not known before: take the sizes "
            "from `ops.shape(x)`",
        ),
        (
            "mixed, _ = attention(",
            "mixed = attention(",
            "`attention` returns two things, the mixed vectors and the "
            "weights; take the first",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.query(x), self.query(x), self.query(x)",
            "`query` makes all three; `key` and `value` are layers of their "
            "own",
        ),
        (
            "ops.swapaxes(ops.reshape(x, (B, S, self.N, D // self.N)), 1, 2)",
            "ops.reshape(x, (B, self.N, S, D // self.N))",
            "`heads` cuts across tokens: reshape to (B, S, N, H), then swap "
            "the axes of tokens and heads",
        ),
        (
            "ops.swapaxes(ops.reshape(x, (B, S, self.N, D // self.N)), 1, 2)",
            "ops.reshape(x, (B, S, self.N, D // self.N))",
            "`heads` leaves the heads behind the tokens: swap axes 1 and 2",
        ),
        (
            "ops.swapaxes(ops.reshape(x, (B, S, self.N, D // self.N)), 1, 2)",
            "ops.transpose(ops.reshape(x, (B, S, D // self.N, self.N)), "
            "(0, 3, 1, 2))",
            "a head takes every N-th column; it must take H columns in a row",
        ),
        (
            "ops.reshape(ops.swapaxes(mixed, 1, 2), ops.shape(x))",
            "ops.reshape(mixed, ops.shape(x))",
            "the heads must go behind the tokens again before they are joined: "
            "swap axes 1 and 2",
        ),
        (
            "return self.output_projection(mixed)",
            "return mixed",
            "`output_projection` is not used",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.key(x), self.key(x), self.value(x)",
            "`query` is not used",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.query(x), self.query(x), self.value(x)",
            "`key` is not used",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.query(x), self.key(x), self.key(x)",
            "`value` is not used",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.query(x), self.key(x), x",
            "`value` is not used: x itself is mixed",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "x, x, x",
            "`query`, `key` and `value` are not used",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.key(x), self.query(x), self.value(x)",
            "query and key are exchanged",
        ),
        (
            "self.query(x), self.key(x), self.value(x)",
            "self.query(x), self.value(x), self.key(x)",
            "key and value are exchanged",
        ),
        (
            "query, key, value, visible, self.dropout)",
            "query, key, value, None, self.dropout)",
            "the mask is not used",
        ),
        (
            "visible = mask[:, None, None, :]",
            "visible = 1 - mask[:, None, None, :]",
            "the mask is the wrong way round: 1 is a real token",
        ),
        (
            "visible = mask[:, None, None, :]",
            "visible = mask[:, None, :, None]",
            "the mask hides queries; it must hide keys, on the last axis",
        ),
        (
            "visible = mask[:, None, None, :]",
            "visible = mask",
            "the mask, (B, S), does not fit the scores, (B, N, S, S): make it "
            "(B, 1, 1, S)",
        ),
        (
            "visible = mask[:, None, None, :]",
            "visible = mask[:, None, :]",
            "the mask, (B, S), does not fit the scores, (B, N, S, S): it must "
            "be (B, 1, 1, S), with two new axes",
        ),
        (
            "visible, self.dropout)",
            "visible)",
            "`dropout` is not used; it drops weights",
        ),
        (
            "mixed, _ = attention(query, key, value, visible, self.dropout)",
            "mixed, _ = attention(query, key, value, visible)\n"
            "        mixed = self.dropout(mixed)",
            "`dropout` is given the mixed vectors; it must drop weights: give "
            "it to `attention`",
        ),
        (
            "return self.output_projection(mixed)",
            "return self.dropout(self.output_projection(mixed))",
            "`dropout` is given the result, too; it must drop weights alone",
        ),
        (
            "return self.output_projection(mixed)",
            "return x + self.output_projection(mixed)",
            "the input is added to the result; that comes later, in the block",
        ),
        (
            "mixed, _ = attention(",
            "_, mixed = attention(",
            "the weights are used in place of the mixed vectors: `attention` "
            "returns both, the mixed vectors first",
        ),
        (
            "query, key, value = (self.heads(part) for part in parts)\n"
            "        visible = mask[:, None, None, :]  # (B, 1, 1, S): hides "
            "keys\n"
            "        mixed, _ = attention(query, key, value, visible, "
            "self.dropout)\n"
            "        mixed = ops.reshape(ops.swapaxes(mixed, 1, 2), "
            "ops.shape(x))",
            "query, key, value = parts\n"
            "        mixed, _ = attention(query, key, value, "
            "mask[:, None, :], self.dropout)",
            "it is one head as wide as D; cut query, key and value with "
            "`heads`",
        ),
    ),
)
