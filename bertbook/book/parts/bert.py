"""The model: `bert.py` of `mybert`."""

import sys
from functools import partial
from typing import Any

import numpy as np

from bertbook.book.parts.part import Part, filled, numbers

SIZES = {"V": 7, "D": 4, "L": 3, "N": 2, "F": 6, "P": 9}
BATCH = {
    "input_ids": np.array([[3, 1, 6, 1, 0], [5, 4, 2, 2, 6]], "int32"),
    "token_type_ids": np.array([[0, 0, 1, 1, 0], [0, 1, 1, 1, 1]], "int32"),
    "attention_mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32"),
}


def _states(model_class: Any) -> dict[str, Any] | None:
    """Fills an encoder and runs it, layer by layer."""
    model = model_class(**SIZES, dropout=0.5)
    turned = dict(reversed(BATCH.items()))  # names count, not their order
    batch = dict(turned)
    found = model.states(batch)
    if found is None:
        return None
    if not isinstance(found, list | tuple):
        kind = type(found).__name__
        size = getattr(found, "shape", None)
        kind += f" of shape {tuple(size)}" if size is not None else ""
        raise TypeError(f"`states` must return a list; it returns a {kind}")
    if batch.keys() != BATCH.keys():
        raise ValueError("it changes the batch that it is given")
    shapes = filled(model)
    states = [numbers(state) for state in model.states(turned)]
    return {
        "its weights": shapes,
        "how many states": len(states),
        **{f"states[{i}]": state for i, state in enumerate(states)},
    }


LOOP = """\
states = [x]
        for block in self.blocks:
            x = block(x, batch["attention_mask"])
            states.append(x)
        return states"""
BERT = Part(
    "bert",
    "23",
    attempt=lambda model_class: {"": partial(_states, model_class)},
    mistakes=(
        (
            "states = [x]",
            "states = []",
            "the vectors after the embeddings are missing; they come first",
        ),
        (
            "return states",
            "return x",
            "it returns the last vectors alone; return all in a list",
        ),
        (
            "return states",
            "return [x]",
            "only the last vectors are in the list; it must hold L + 1 times "
            "(B, S, D)",
        ),
        (
            "x = block(x, ",
            "x = block(states[0], ",
            "every block reads the embeddings; it must read the vectors of the "
            "block before it",
        ),
        (
            "x = block(x, ",
            "x = self.blocks[0](x, ",
            "the first block is used every time; each block has weights of its "
            "own",
        ),
        (
            "x = block(x, ",
            "x = x + block(x, ",
            "the input of each block is added to its result; the block has "
            "done that",
        ),
        (
            'batch["input_ids"], batch["token_type_ids"]',
            "*list(batch.values())[:2]",
            "the arrays of the batch are taken in their order; take them by "
            "their names",
        ),
        (
            'batch["input_ids"], batch["token_type_ids"]',
            'batch["input_ids"], 0 * batch["token_type_ids"]',
            "the segments are not used",
        ),
        (
            'batch["input_ids"], batch["token_type_ids"]',
            'batch["token_type_ids"], batch["input_ids"] * 0',
            "ids and segments are exchanged",
        ),
        (
            'batch["input_ids"], batch["token_type_ids"]',
            'batch["input_ids"], batch["attention_mask"]',
            "the mask is taken for the segments",
        ),
        (
            'x, batch["attention_mask"]',
            'x, batch["token_type_ids"]',
            "the segments are taken for the mask",
        ),
        (
            'x, batch["attention_mask"]',
            'x, batch["attention_mask"] * 0 + 1',
            "the mask does not reach the blocks",
        ),
        (
            'x, batch["attention_mask"]',
            'x, 1 - batch["attention_mask"]',
            "the mask is the wrong way round: 1 is a real token",
        ),
        (
            "in self.blocks:",
            "in self.blocks[:-1]:",
            "the last block is left out",
        ),
        (
            "in self.blocks:",
            "in self.blocks[1:]:",
            "the first block is left out",
        ),
        (
            "in self.blocks:",
            "in self.blocks[:1]:",
            "only the first block is used: does `return` stand inside the "
            "loop?",
        ),
        (
            "in self.blocks:",
            "in self.blocks[::-1]:",
            "the blocks run from the last to the first",
        ),
        (
            LOOP,
            """\
states = []
        for block in self.blocks:
            states.append(x)
            x = block(x, batch["attention_mask"])
        return states""",
            "the vectors after the last block are missing",
        ),
        (
            LOOP,
            """\
states = [x]
        for block in self.blocks:
            states.append(x)
            x = block(x, batch["attention_mask"])
        return states""",
            "each block's input is kept; keep what it returns",
        ),
    ),
)


def _guesses(model_class: Any) -> dict[str, Any] | None:
    """Fills a model with both heads and runs it."""
    bert = sys.modules[model_class.__module__].Bert(
        **SIZES | {"L": 2}, dropout=0.5
    )
    model = model_class(bert)
    found = model(BATCH)
    if found is None:
        return None
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise TypeError(
            "it must return a dictionary of `mlm_logits` and `nsp_logits`; it "
            f"returns a {kind}"
        )
    shapes = filled(model)
    logits = {name: numbers(one) for name, one in model(BATCH).items()}
    # As `fit` runs it on JAX: layers inside do not know that it is training.
    trained = model.call(BATCH, training=True).get("mlm_logits")
    return {
        "its weights": shapes,
        "the logits": logits,
        "dropout in training": trained is not None
        and bool((numbers(trained) != logits["mlm_logits"]).any()),
    }


GUESS = "guess = self.norm(ops.gelu(self.dense(x), approximate=False))"
MLM = "ops.matmul(guess, ops.transpose(table)) + self.bias"
BERT_FOR_PRETRAINING = Part(
    "bert",
    "23",
    attempt=lambda model_class: {"": partial(_guesses, model_class)},
    mistakes=(
        (
            GUESS,
            "guess = self.norm(ops.gelu(self.dense(x)))",
            "GELU by the formula with tanh; BERT has the exact one: "
            "`approximate=False`",
        ),
        (
            GUESS,
            "guess = self.norm(self.dense(x))",
            "GELU is missing between `dense` and `norm`",
        ),
        (
            GUESS,
            "guess = ops.gelu(self.dense(x), approximate=False)",
            "`norm` is not used",
        ),
        (
            GUESS,
            "guess = self.norm(ops.relu(self.dense(x)))",
            "it has ReLU; BERT has GELU",
        ),
        (
            GUESS,
            "guess = self.norm(ops.tanh(self.dense(x)))",
            "it has tanh, as the pooler; the head of masked words has GELU",
        ),
        (
            GUESS,
            "guess = ops.gelu(self.norm(self.dense(x)), approximate=False)",
            "`norm` comes before GELU; it must come after",
        ),
        (
            GUESS,
            "guess = self.dense(self.norm(ops.gelu(x, approximate=False)))",
            "`dense` comes last; it must come first, then GELU, then `norm`",
        ),
        (
            GUESS,
            "guess = self.norm(x)",
            "`dense` and GELU are missing",
        ),
        (
            GUESS,
            "guess = x",
            "`dense`, GELU and `norm` are missing: the vectors are compared "
            "with the table as they are",
        ),
        (
            GUESS,
            "guess = self.norm(x + ops.gelu(self.dense(x), approximate=False))",
            "x is added in the head; nothing is added there",
        ),
        (
            MLM,
            "ops.matmul(guess, ops.transpose(table))",
            "`bias` is not used",
        ),
        (
            MLM,
            "ops.softmax(ops.matmul(guess, ops.transpose(table)) + self.bias)",
            "`mlm_logits` are probabilities; leave softmax out, they are "
            "scores",
        ),
        (
            MLM,
            "ops.matmul(guess, table) + self.bias",
            "the table, (V, D), must be transposed",
        ),
        (
            "self.bert.pooler(x[:, 0])",
            "x[:, 0]",
            "the pooler is missing before `next_sentence`",
        ),
        (
            "self.bert.pooler(x[:, 0])",
            "self.bert.pooler(x)[:, -1]",
            "the second head reads the last token; it must read [CLS], the "
            "first",
        ),
        (
            "self.bert.pooler(x[:, 0])",
            "self.bert.pooler(x)",
            "the second head reads every token; it must read [CLS] alone",
        ),
        (
            "self.bert.pooler(x[:, 0])",
            "self.bert.pooler(ops.mean(x, axis=1))",
            "the second head reads the mean of all tokens; it must read [CLS]",
        ),
        (
            "self.bert.pooler(x[:, 0])",
            "self.bert.pooler(guess[:, 0])",
            "the second head reads the first head's vector of [CLS]; it must "
            "read the encoder's",
        ),
        (
            "self.bert.pooler(x[:, 0])",
            "ops.tanh(self.bert.pooler(x[:, 0]))",
            "tanh comes twice: it is in the pooler",
        ),
        (
            '"nsp_logits": follows,',
            '"nsp_logits": ops.softmax(follows),',
            "`nsp_logits` are probabilities; leave softmax out, they are "
            "scores",
        ),
        (
            '"nsp_logits": follows,',
            '"nsp_logits": follows[:, ::-1],',
            'the two scores of `nsp_logits` are exchanged: "it follows" is the '
            "first",
        ),
        (
            "self.bert(batch, training=training)",
            "self.bert(batch)",
            "`training` does not reach the encoder, so that dropout never "
            "works: `self.bert(batch, training=training)`",
        ),
        (
            "self.bert(batch, training=training)",
            "self.bert.states(batch)",
            "the heads get the list of all states; `self.bert(batch)` gives "
            "the last",
        ),
        (
            '"mlm_logits": ops.matmul(guess, ops.transpose(table)) + self.bias,'
            '\n            "nsp_logits": follows,',
            '"mlm_logits": follows,\n            "nsp_logits": '
            "ops.matmul(guess, ops.transpose(table)) + self.bias,",
            "the two results are exchanged: `mlm_logits` has V numbers a token",
        ),
        (
            "self.bert(batch, training=training)",
            "self.bert.states(batch)[0]",
            "the heads read the embeddings; they must read the last vectors",
        ),
        (
            "self.bert(batch, training=training)",
            "self.bert.states(batch)[-2]",
            "the last block is left out",
        ),
    ),
)
