"""The block: `block.py` of `mybert`."""

from functools import partial
from typing import Any

import numpy as np

from bertbook.book.parts.part import Part, filled, numbers, squares

X = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
MASK = np.array([[1, 1, 0], [1, 1, 1]], "int32")  # (B, S)


def _each_token(layer_class: Any) -> dict[str, Any] | None:
    """Fills a feed-forward network and runs it."""
    layer = layer_class(4, 6)
    if layer(X) is None:
        return None
    shapes = filled(layer)
    return {
        "its weights": shapes,
        "their order": list(shapes),
        "the vectors": numbers(layer(X)),
    }


FEED_FORWARD = Part(
    "block",
    "22",
    attempt=lambda layer_class: {"": partial(_each_token, layer_class)},
    mistakes=(
        (
            "ops.gelu(self.expand(x), approximate=False)",
            "ops.gelu(self.expand(x))",
            "GELU by the formula with tanh; BERT has the exact one: "
            "`approximate=False`",
        ),
        (
            "ops.gelu(self.expand(x), approximate=False)",
            "self.expand(x)",
            "GELU is missing: two matrices without it are one matrix",
        ),
        (
            "ops.gelu(self.expand(x), approximate=False)",
            "ops.relu(self.expand(x))",
            "it has ReLU, as the Transformer of 2017; BERT has GELU",
        ),
        (
            "ops.gelu(self.expand(x), approximate=False)",
            "ops.silu(self.expand(x))",
            "it has SiLU (swish); BERT has GELU",
        ),
        (
            "ops.gelu(self.expand(x), approximate=False)",
            "ops.tanh(self.expand(x))",
            "it has tanh; BERT has GELU",
        ),
        (
            "ops.gelu(self.expand(x), approximate=False)",
            "self.expand(ops.gelu(x, approximate=False))",
            "GELU comes before `expand`; it must come after",
        ),
        (
            "wide = ops.gelu(self.expand(x), approximate=False)"
            "  # (B, S, F)\n"
            "        return self.contract(wide)",
            "return ops.gelu(self.contract(self.expand(x)), approximate=False)",
            "GELU comes after `contract`; it must come between the two",
        ),
        (
            "return self.contract(wide)",
            "return ops.gelu(self.contract(wide), approximate=False)",
            "GELU comes twice; it must not follow `contract`",
        ),
        (
            "return self.contract(wide)",
            "return wide",
            "`contract` is not used: the result is F wide",
        ),
        (
            "wide = ops.gelu(self.expand(x), approximate=False)"
            "  # (B, S, F)\n"
            "        return self.contract(wide)",
            "return self.expand(ops.gelu(self.contract(x), approximate=False))",
            "`contract` comes first; widen with `expand`, then narrow",
        ),
        (
            "return self.contract(wide)",
            "return x + self.contract(wide)",
            "the input is added to the result; that comes later, in the block",
        ),
    ),
)


def _run(layer_class: Any) -> dict[str, Any] | None:
    """Fills a block and runs it: in use, on padding, with odd dropout."""
    layer = layer_class(4, 2, 6, 0.5)
    if layer(X, MASK) is None:
        return None
    shapes = filled(layer)
    used = numbers(layer(X, MASK))
    trained = numbers(layer(X, MASK, training=True))
    layer.dropout = squares
    return {
        "its weights": shapes,
        "their order": list(shapes),
        "the same in training": bool(np.allclose(trained, used)),
        "without padding": numbers(layer(X, np.ones_like(MASK))),
        "with padding": used,
        "with squares in place of dropout": numbers(layer(X, MASK)),
    }


FIRST = """\
gathered = self.dropout(self.attention(x, mask))
        x = self.attention_norm(x + gathered)
"""
SECOND = """\
        worked = self.dropout(self.feed_forward(x))
        return self.output_norm(x + worked)"""
BLOCK = Part(
    "block",
    "22",
    attempt=lambda layer_class: {"": partial(_run, layer_class)},
    mistakes=(
        (
            FIRST + SECOND,
            FIRST.replace("(x + gathered)", "(gathered) + x")
            + SECOND.replace("(x + worked)", "(worked) + x"),
            "the norms work on what is added; add first, then normalize the "
            "sum",
        ),
        (
            "self.attention_norm(x + gathered)",
            "self.attention_norm(gathered)",
            "the input of attention is not added to what it gathered",
        ),
        (
            "self.output_norm(x + worked)",
            "self.output_norm(worked)",
            "the input of the feed-forward network is not added to its result",
        ),
        (
            FIRST + SECOND,
            "x = self.attention_norm(self.dropout(self.attention(x, mask)))\n"
            "        return self.output_norm(self.dropout("
            "self.feed_forward(x)))",
            "nothing is added: each part's input goes to its result",
        ),
        (
            FIRST + SECOND,
            "x = x + self.dropout(self.attention("
            "self.attention_norm(x), mask))\n"
            "        return x + self.dropout(self.feed_forward("
            "self.output_norm(x)))",
            "it normalizes before each part (pre-norm); BERT adds, then "
            "normalizes",
        ),
        (
            "self.attention_norm(x + gathered)",
            "x + gathered",
            "`attention_norm` is not used",
        ),
        (
            "self.output_norm(x + worked)",
            "x + worked",
            "`output_norm` is not used",
        ),
        (
            "self.output_norm(x + worked)",
            "self.attention_norm(x + worked)",
            "`attention_norm` is used twice, and `output_norm` never",
        ),
        (
            FIRST + SECOND,
            FIRST.replace("attention_norm", "output_norm")
            + SECOND.replace("output_norm", "attention_norm"),
            "the two norms are exchanged",
        ),
        (
            "self.attention_norm(x + gathered)",
            "x + self.attention_norm(gathered)",
            "the norm takes what attention gathered; it must take the sum",
        ),
        (
            "self.output_norm(x + worked)",
            "x + self.output_norm(worked)",
            "the norm takes the result of the feed-forward network; it must "
            "take the sum",
        ),
        (
            FIRST + SECOND,
            "start = x\n        "
            + FIRST
            + SECOND.replace("x + w", "start + w"),
            "the block's input is added at the end; it must be the vectors "
            "after the first norm",
        ),
        (
            FIRST + SECOND,
            "start = x\n        " + FIRST + SECOND.replace("(x))", "(start))"),
            "the feed-forward network reads the block's input; it must read "
            "the vectors after the first norm",
        ),
        (
            "self.feed_forward(x)",
            "self.feed_forward(gathered)",
            "the feed-forward network reads what attention gathered; it must "
            "read the vectors after the first norm",
        ),
        (
            "self.dropout(self.attention(x, mask))",
            "self.attention(x, mask)",
            "`dropout` does not follow attention",
        ),
        (
            "self.dropout(self.feed_forward(x))",
            "self.feed_forward(x)",
            "`dropout` does not follow the feed-forward network",
        ),
        (
            FIRST + SECOND,
            (FIRST + SECOND)
            .replace(
                "self.dropout(self.attention(x, mask))",
                "self.attention(x, mask)",
            )
            .replace(
                "self.dropout(self.feed_forward(x))", "self.feed_forward(x)"
            ),
            "`dropout` is not used; it follows each of the two parts",
        ),
        (
            FIRST + SECOND,
            "gathered = self.attention(x, mask)\n"
            "        x = self.attention_norm(self.dropout(x + gathered))\n"
            "        worked = self.feed_forward(x)\n"
            "        return self.output_norm(self.dropout(x + worked))",
            "`dropout` is given the sums; it must be given what each part "
            "returns, before the sum",
        ),
        (
            FIRST + SECOND,
            "gathered = self.attention(x, mask)\n"
            "        x = self.dropout(self.attention_norm(x + gathered))\n"
            "        worked = self.feed_forward(x)\n"
            "        return self.dropout(self.output_norm(x + worked))",
            "`dropout` follows the norms; it must come before each sum",
        ),
        (
            "self.attention(x, mask)",
            "self.attention(x, mask * 0 + 1)",
            "the mask does not reach attention",
        ),
        (
            FIRST + SECOND,
            "worked = self.dropout(self.feed_forward(x))\n"
            "        x = self.output_norm(x + worked)\n"
            "        gathered = self.dropout(self.attention(x, mask))\n"
            "        return self.attention_norm(x + gathered)",
            "the feed-forward network comes first; attention does",
        ),
        (
            FIRST + SECOND,
            SECOND.lstrip(),
            "attention is left out",
        ),
        (
            FIRST + SECOND,
            FIRST + "        return x",
            "the feed-forward network is left out",
        ),
        (
            FIRST + SECOND,
            FIRST.replace(
                "self.dropout(self.attention(x, mask))",
                "self.attention(x, mask)",
            )
            + SECOND.replace(
                "output_norm(x + worked)", "output_norm(x + worked + gathered)"
            ),
            "what attention gathered is added twice",
        ),
    ),
)
