"""Pre-training: `pretraining.py` of `mybert`.

What is drawn by chance is compared by its rounded shares, and by what must
hold for every draw.
"""

import sys
from functools import partial
from typing import Any

import numpy as np

from bertbook.book.parts.part import Calls, Part, numbers
from bertbook.plain.pretraining import IGNORED
from bertbook.plain.tokenizer import BATCH, SPECIAL, Tokenizer
from bertbook.runtime import keras, uncompiled

V, MASK = 1_000, 4
KNOWN = [0, 1, 2, 3, 4, 999]  # the special ids; one is the last
PIECES = [*SPECIAL, *"abcdefghij", "##a", "##b"]

# ---------------------------------------------------------------- the loss

LOGITS = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
HIDDEN = np.array([[0, IGNORED, 3], [IGNORED, 2, IGNORED]])
LOSS_END = """\
    return ops.sum(nats * counts) / ops.maximum(ops.sum(counts), 1.0)"""
MASKED_LOSS = Part(
    "pretraining",
    "30",
    attempt=lambda loss: {
        f"`masked_loss` of {name}": partial(
            lambda *case: numbers(loss(*case)), *case
        )
        for name, case in {
            "some hidden tokens": (HIDDEN, LOGITS),
            "sure logits": (HIDDEN, 90 * LOGITS),
            "all tokens hidden": (np.abs(HIDDEN) % 4, LOGITS),
            "one label a row": (np.array([1, 0]), LOGITS[0, :2]),
            "nothing hidden": (np.full((2, 3), IGNORED), LOGITS),
        }.items()
    },
    mistakes=(
        (
            LOSS_END,
            "    return ops.mean(nats * counts)",
            "it divides by all tokens; divide by the hidden ones",
        ),
        (
            LOSS_END,
            "    return ops.mean(nats)",
            "tokens count that were not hidden",
        ),
        (
            LOSS_END,
            "    return ops.sum(nats * counts)",
            "it is the sum of the costs; return their mean",
        ),
        (
            LOSS_END,
            "    return ops.sum(nats * counts) / ops.sum(counts)",
            "where nothing is hidden it divides by 0; return 0 there",
        ),
        (
            LOSS_END,
            "    return -ops.sum(nats * counts) "
            "/ ops.maximum(ops.sum(counts), 1.0)",
            "the sign is wrong: a cost is never negative",
        ),
        (
            LOSS_END,
            "    return ops.sum(nats * counts) "
            "/ ops.maximum(ops.sum(counts), 1.0) / np.log(2)",
            "these are bits; return nats",
        ),
        (
            "from_logits=True",
            "from_logits=False",
            "`from_logits=True` is missing: logits are no probabilities",
        ),
        (
            "labels >= 0",
            "labels > 0",
            "a label 0 is not counted; id 0 is an answer, too",
        ),
        (
            LOSS_END,
            "    rows = ops.sum(nats * counts, -1) "
            "/ ops.maximum(ops.sum(counts, -1), 1.0)\n"
            "    return ops.mean(rows)",
            "it is the mean of the rows' means; a hidden token counts the "
            "same in every row",
        ),
        (
            LOSS_END,
            "    return nats * counts",
            "it returns the cost of each token; return the mean of the hidden "
            "ones",
        ),
    ),
)

# --------------------------------------------------------------- the masks


def _shares(function: Any) -> Calls:
    ids = np.random.default_rng(5).integers(0, V, (300, 400))
    before = ids.copy()

    def run(seed, rate=None):
        rng = np.random.default_rng(seed)
        more = () if rate is None else (rate,)
        found = function(ids, KNOWN, MASK, V, rng, *more)
        if found is None:
            return None
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError("it must return two arrays: ids and labels")
        return [np.asarray(one) for one in found]

    def shares(rate):
        if (found := run(0, rate)) is None:
            return None
        hidden, labels = found
        asked = labels != IGNORED
        ordinary = ~np.isin(ids, KNOWN)
        now, old = hidden[asked], ids[asked]
        other = now[(now != MASK) & (now != old)]
        return {
            "the ids that it was given": "changed"
            if (ids != before).any()
            else "as they were",
            "shapes": [list(hidden.shape), list(labels.shape)],
            "labels that are no id and not -100": int(
                (asked & (labels < 0)).sum()
            ),
            "chosen tokens whose label is not the old id": int(
                (labels != ids)[asked].sum()
            ),
            "special tokens that are chosen": int((asked & ~ordinary).sum()),
            "ids that change without being chosen": int(
                (hidden != ids)[~asked].sum()
            ),
            "chosen, of the ordinary tokens": _rounded(asked[ordinary].mean()),
            "[MASK], of the chosen": _rounded((now == MASK).mean()),
            "kept, of the chosen": _rounded((now == old).mean()),
            "tokens chosen in a row": "differ"
            if asked.sum(axis=1).std() > 3
            else "always as many",
            "special ids among the random ones": int(
                np.isin(other, KNOWN).sum()
            ),
            "the random ones reach every piece": bool(
                len(np.unique(other)) > (V - 6) * 0.6 and other.max() > V - 9
            )
            if len(other)
            else None,
        }

    def again():
        first, second, third = run(1), run(1), run(2)
        if first is None:
            return None
        np.random.seed(1)  # noqa: NPY002
        often = [run(seed) for seed in range(6)]
        return {
            "[MASK], of the chosen, in six draws": sorted(
                {_rounded((h[y >= 0] == MASK).mean()) for h, y in often}
            ),
            "the same generator gives the same masks": all(
                map(np.array_equal, first, second)
            ),
            "another one gives others": not np.array_equal(first[1], third[1]),
            "rows are masked differently": not (
                (first[1] >= 0) == (first[1][:1] >= 0)
            ).all(),
        }

    return {
        "with the rate 0.15": partial(shares, None),
        "with the rate 0.4": partial(shares, 0.4),
        "drawn again": again,
    }


def _rounded(share: Any) -> float:
    """Returns a share in twentieths: the right ones are whole numbers of them.

    So chance does not show, whatever the order in which an answer draws.
    """
    return round(20 * float(share)) / 20 if np.isfinite(share) else -1.0


MASK_TOKENS = Part(
    "pretraining",
    "30",
    attempt=_shares,
    mistakes=(
        (
            "np.where(chosen, ids, IGNORED)",
            "ids",
            "every token has a label; where none was chosen it must be -100",
        ),
        (
            "np.where(chosen, ids, IGNORED)",
            "np.where(chosen, hidden, IGNORED)",
            "the labels are what the model sees; they must be the old ids",
        ),
        (
            "np.where(chosen, ids, IGNORED)",
            "np.where(chosen, ids, 0)",
            "labels are 0 where no token was chosen; they must be -100",
        ),
        (
            "np.where(chosen, ids, IGNORED)",
            "np.where(chosen & (lot < 0.8), ids, IGNORED)",
            "only tokens that became [MASK] have a label; all that were "
            "chosen must have one",
        ),
        (
            "np.where(chosen, ids, IGNORED)",
            "np.where(hidden != ids, ids, IGNORED)",
            "tokens that were kept have no label; they are asked for, too",
        ),
        (
            "chosen = ordinary & (rng.random(ids.shape) < rate)",
            "chosen = rng.random(ids.shape) < rate",
            "special tokens are chosen, too",
        ),
        (
            "rng.random(ids.shape) < rate",
            "rng.random(ids.shape) < 0.15",
            "`rate` is not used",
        ),
        (
            "rng.random(ids.shape) < rate",
            "rng.random(ids.shape) > rate",
            "the share of chosen tokens is 1 - `rate`",
        ),
        (
            "(lot < 0.8)",
            "(lot < 2)",
            "every chosen token becomes [MASK]; one in ten must become random, "
            "and one in ten stay (the number that chose a token is below "
            "`rate`: draw another one for what becomes of it)",
        ),
        (
            "(lot >= 0.8) & (lot < 0.9)",
            "(lot >= 0.8)",
            "no chosen token is kept: one in ten must stay",
        ),
        (
            "(lot >= 0.8) & (lot < 0.9)",
            "(lot > 2)",
            "no chosen token becomes random: one in ten must",
        ),
        (
            "(lot >= 0.8) & (lot < 0.9)",
            "(lot < 0.1)",
            "the random tokens are taken from those that become [MASK]; draw "
            "one lot and cut it at 0.8 and 0.9",
        ),
        (
            "is_random = chosen & (lot",
            "is_random = (lot",
            "tokens that were not chosen become random",
        ),
        (
            "hidden = np.where(chosen & (lot < 0.8), mask_id, ids)",
            "hidden = np.where(lot < 0.8, mask_id, ids)",
            "tokens that were not chosen become [MASK]",
        ),
        (
            "rng.choice(pieces, ids.shape)",
            "rng.integers(V, size=ids.shape)",
            "a random token may be a special one; it must not be",
        ),
        (
            "rng.choice(pieces, ids.shape)",
            "rng.choice(pieces)",
            "all random tokens are the same; draw one for each place",
        ),
        (
            "lot = rng.random(ids.shape)",
            "lot = np.random.random(ids.shape)",
            "it draws from `np.random`; draw all from `rng`",
        ),
        (
            "lot = rng.random(ids.shape)",
            "lot = rng.random()",
            "one lot decides for all chosen tokens; draw one for each",
        ),
        (
            "chosen = ordinary & (rng.random(ids.shape) < rate)",
            "order = np.where(ordinary, rng.random(ids.shape), 2).argsort()\n"
            "    chosen = np.zeros(ids.shape, bool)\n"
            "    few = np.round(rate * ordinary.sum(1)).astype(int)\n"
            "    for row, places, n in zip(chosen, order, few, strict=True):\n"
            "        row[places[:n]] = True",
            "every row has a fixed number of chosen tokens; draw for each "
            "token by itself",
        ),
        (
            "(lot >= 0.8) & (lot < 0.9)",
            "(lot >= 0.8) & (rng.random(ids.shape) < 0.1)",
            "a tenth of the rest becomes random; it must be a tenth of all "
            "chosen tokens",
        ),
        (
            "(rng.random(ids.shape) < rate)",
            "(rng.random(ids.shape[1]) < rate)",
            "the same places are chosen in every row; draw for each row",
        ),
        (
            "return hidden, np.where(chosen, ids, IGNORED)",
            "ids[:] = hidden\n"
            "    return hidden, np.where(chosen, ids, IGNORED)",
            "it changes what it is given; work on a copy",
        ),
    ),
)

# --------------------------------------------------------------- the pairs


def _pairs(function: Any) -> Calls:
    many = [[f"{d} {s}" for s in range(40)] for d in range(60)]
    odd = [["0 0", "0 1"], ["1 0"], ["2 0", "2 1", "2 2"]]

    def drawn(documents, seed=0):
        found = function(documents, np.random.default_rng(seed))
        return None if found is None else list(found)

    def promises():
        if (found := drawn(many)) is None:
            return None
        places = [
            [tuple(map(int, text.split())) for text in pair[:2]]
            for pair in found
        ]
        labels = np.array([int(pair[2]) for pair in found])
        goes_on = np.array([b == (a[0], a[1] + 1) for a, b in places])
        apart = np.array([a[0] != b[0] for a, b in places])
        others = {
            b for (_, b), label in zip(places, labels, strict=True) if label
        }
        return {
            "pairs": len(found),
            "first texts, in order": [a for a, _ in places]
            == [(d, s) for d in range(60) for s in range(39)],
            "labels": sorted({int(label) for label in labels}),
            "label 0 where the second text follows": bool(
                (goes_on == (labels == 0)).all()
            ),
            "label 1 where it is from another document": bool(
                (apart == (labels == 1)).all()
            ),
            "documents with both labels": len(
                {
                    (a[0], label)
                    for (a, _), label in zip(places, labels, strict=True)
                }
            )
            // 2,
            "share of label 1": round(10 * labels.mean()) / 10,
            "the others come from every document": len({b[0] for b in others})
            == 60,
            "of one document they come from several": all(
                len(
                    {
                        b[0]
                        for (a, b), label in zip(places, labels, strict=True)
                        if label and a[0] == d
                    }
                )
                > 5
                for d in range(60)
            ),
            "places in it that they come from": len({b[1] for b in others}),
        }

    def few():
        labels = [drawn(odd, seed) for seed in range(30)]
        if labels[0] is None:
            return None
        firsts = {tuple(pair[0] for pair in found) for found in labels}
        return {"first texts of short documents": sorted(firsts)}

    def again():
        first = drawn(many)
        if first is None:
            return None
        return {
            "the same generator gives the same pairs": first == drawn(many),
            "another one gives others": first != drawn(many, 1),
        }

    return {
        "60 documents": promises,
        "short documents": few,
        "drawn again": again,
    }


LOOP = "for first, second in zip(document, document[1:], strict=False):"
OTHER = """\
                other = rng.integers(len(documents) - 1)
                other = documents[other + (other >= number)]
"""
FOLLOWS = "yield first, second, IS_NEXT"
COMES_FROM = "yield first, other[rng.integers(len(other))], NOT_NEXT"
TOSS = "            if rng.random() < 0.5:\n"
BETWEEN = "            else:\n"
BODY = TOSS + f"                {FOLLOWS}\n" + BETWEEN + OTHER
SENTENCE_PAIRS = Part(
    "pretraining",
    "31",
    attempt=_pairs,
    mistakes=(
        (
            BODY + f"                {COMES_FROM}",
            BODY.replace("IS_NEXT", "NOT_NEXT")
            + f"                {COMES_FROM.replace('NOT_NEXT', 'IS_NEXT')}",
            "the labels are exchanged: 0 where the second text follows",
        ),
        (
            "rng.random() < 0.5",
            "True",
            "the second text always follows; for half of the pairs it must not",
        ),
        (
            "rng.random() < 0.5",
            "False",
            "the second text never follows; for half of the pairs it must",
        ),
        (
            "rng.random() < 0.5",
            "rng.random() < 0.15",
            "it tosses another coin: half of the pairs must follow",
        ),
        (
            "rng.random() < 0.5",
            "number % 2",
            "whole documents follow or do not; toss for each pair",
        ),
        (
            OTHER,
            "                other = documents[rng.integers(len(documents))]\n",
            "the other document may be the same one",
        ),
        (
            "documents[other + (other >= number)]",
            "documents[other]",
            "the other document may be the same one, and is never the last",
        ),
        (
            OTHER,
            "                other = documents[number - 1]\n",
            "the second text is always from the document before; draw one",
        ),
        (
            OTHER,
            "                other = document\n",
            "the random text is from the same document; it must come from "
            "another",
        ),
        (
            "other[rng.integers(len(other))]",
            "other[0]",
            "the random text is always the first of its document; draw one",
        ),
        (
            "other[rng.integers(len(other))]",
            "other[rng.integers(len(other) - 1) if len(other) > 1 else 0]",
            "the last sentence of a document is never drawn: `rng.integers(n)` "
            "ends before n",
        ),
        (
            LOOP,
            "for first, second in zip(document[::2], document[1::2], "
            "strict=False):",
            "it skips every second sentence; each but the last is a first text",
        ),
        (
            LOOP,
            "for first, second in zip(document, [*document[1:], "
            "documents[number - 1][0]], strict=True):",
            "the last sentence of a document gets a pair; nothing follows it",
        ),
        (
            FOLLOWS,
            "yield second, first, IS_NEXT",
            "the two texts are exchanged",
        ),
        (
            "rng.random() < 0.5",
            "np.random.random() < 0.5",
            "it draws from `np.random`; draw all from `rng`",
        ),
    ),
)

# --------------------------------------------------------------- the batch


def _batch(function: Any) -> Calls:
    tokenizer = Tokenizer(PIECES)
    rng = np.random.default_rng(3)

    def text():
        return " ".join(rng.choice(list("abcdefghij"), rng.integers(3, 9)))

    pairs = [(text(), text(), int(rng.integers(2))) for _ in range(600)]

    def made(**options):
        found = function(tokenizer, pairs, np.random.default_rng(0), **options)
        if found is None:
            return None
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError("it must return a batch and labels")
        batch, labels = found
        names = [sorted(batch), sorted(labels)]
        if names != [sorted(BATCH), ["mlm_logits", "nsp_logits"]]:
            return {"names": names}
        if isinstance(labels["nsp_logits"], list | tuple):
            raise TypeError("labels must be arrays: `np.array(labels)`")
        batch, labels = (
            {k: np.asarray(v) for k, v in d.items()} for d in found
        )
        asked = labels["mlm_logits"] != IGNORED
        ids = np.where(asked, labels["mlm_logits"], batch["input_ids"])
        now = batch["input_ids"][asked]
        return {
            "names": names,
            "the ids before they were hidden": ids,
            "segments": batch["token_type_ids"],
            "attention mask": batch["attention_mask"],
            "labels of the pairs": labels["nsp_logits"],
            "chosen": round(20 * asked[ids > 4].mean()) / 20,
            "of these [MASK]": round(10 * (now == 4).mean()) / 10,
            "of these [UNK]": round(10 * (now == 1).mean()) / 10,
            "ids that are no piece": int((now >= len(PIECES)).sum() > 0),
            "special tokens chosen": sorted({*ids[asked & (ids < 5)].tolist()}),
        }

    def again():
        first, second, third = (
            function(tokenizer, pairs, np.random.default_rng(seed))
            for seed in (1, 1, 2)
        )
        if first is None:
            return None
        first, second, third = (
            np.asarray(found[1]["mlm_logits"])
            for found in (first, second, third)
        )
        return {
            "the same generator gives the same masks": np.array_equal(
                first, second
            ),
            "another one gives others": not np.array_equal(first, third),
        }

    return {
        "600 pairs": made,
        "with `max_length=12`": partial(made, max_length=12),
        "drawn again": again,
    }


GIVEN = "tokenizer(first, second, max_length)"
MASKED = 'batch["input_ids"], hidden = mask_tokens(ids, special, mask, V, rng)'
PRETRAINING_BATCH = Part(
    "pretraining",
    "31",
    attempt=_batch,
    mistakes=(
        (
            MASKED,
            MASKED.replace('batch["input_ids"]', "_"),
            "the model sees all tokens: the masked ids do not reach the batch",
        ),
        (
            GIVEN,
            "tokenizer(first, None, max_length)",
            "the second texts are missing",
        ),
        (
            GIVEN,
            "tokenizer(second, first, max_length)",
            "the two texts are exchanged",
        ),
        (
            GIVEN,
            "tokenizer(first, second)",
            "`max_length` is not used",
        ),
        (
            GIVEN,
            "tokenizer([a + ' ' + b for a, b in zip(first, second)], None, "
            "max_length)",
            "the two texts are joined; give the tokenizer both, so that it "
            "writes [SEP] and segments",
        ),
        (
            "mask_tokens(ids, special, mask, V, rng)",
            "mask_tokens(ids, [], mask, V, rng)",
            "special tokens are masked, too",
        ),
        (
            "mask_tokens(ids, special, mask, V, rng)",
            'mask_tokens(ids, special, tokenizer.ids["[UNK]"], V, rng)',
            "chosen tokens become [UNK]; they must become [MASK]",
        ),
        (
            '"mlm_logits": hidden',
            '"mlm_logits": ids',
            "every token has a label: return those of `mask_tokens`",
        ),
        (
            '"mlm_logits": hidden',
            '"mlm_logits": batch["input_ids"]',
            "the labels are what the model sees: return those of `mask_tokens`",
        ),
        (
            '{"mlm_logits": hidden, "nsp_logits": np.array(labels)}',
            '{"mlm_logits": np.array(labels), "nsp_logits": hidden}',
            "the labels of the two tasks are exchanged",
        ),
        (
            "np.array(labels)",
            "1 - np.array(labels)",
            "the labels of the pairs are turned around",
        ),
        (
            "mask_tokens(ids, special, mask, V, rng)",
            "mask_tokens(ids, special[1:], mask, V, rng)",
            "padding is masked, too: [PAD] is one of the special ids",
        ),
        (
            "mask_tokens(ids, special, mask, V, rng)",
            "mask_tokens(ids, special, mask, 30_000, rng)",
            "random tokens are ids that the tokenizer does not have: give the "
            "number of its pieces",
        ),
        (
            "mask_tokens(ids, special, mask, V, rng)",
            "mask_tokens(ids, special, mask, V, np.random.default_rng(0))",
            "it draws from a generator of its own; draw all from `rng`",
        ),
        (
            "mask_tokens(ids, special, mask, V, rng)",
            "mask_tokens(ids, special, mask, V, rng, 0.8)",
            "it does not mask 15 % of the tokens: leave the rate out",
        ),
    ),
)

# ------------------------------------------------------------ rate and run


def _rates(schedule: Any) -> Calls:
    cases = (0.1, 4, 20), (2.0, 1, 3), (1.0, 50, 60)
    steps = range(22), range(5), (0, 9, 49, 59)

    def trained():
        line = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
        line.build((None, 1))
        line.set_weights([np.ones((1, 1))])
        line.compile(keras.optimizers.SGD(schedule(0.1, 2, 4)), "mse")
        line.fit(np.ones((3, 1)), np.zeros((3, 1)), batch_size=1, verbose=0)
        return numbers(line.weights[0].value)

    calls: Calls = {
        f"`WarmupDecay{case}` at step {step}": partial(
            lambda case, step: numbers(schedule(*case)(step)), case, step
        )
        for case, some in zip(cases, steps, strict=True)
        for step in some
    }
    return calls | {"in a training": trained}


LESS = "ops.maximum(0.0, ops.minimum(up, down))"
WARMUP_DECAY = Part(
    "pretraining",
    "32",
    attempt=_rates,
    mistakes=(
        (
            "up = (step + 1) / self.warmup",
            "up = step / self.warmup",
            "the rate of step 0 is 0; steps count from 0, so it is "
            "`peak / warmup`",
        ),
        (
            LESS,
            "ops.maximum(0.0, ops.minimum(up, 1.0))",
            "the rate stays at the peak; it must fall to 0",
        ),
        (
            LESS,
            "ops.maximum(0.0, ops.minimum(1.0, down))",
            "there is no warm-up: the rate starts at the peak",
        ),
        (
            LESS,
            "ops.minimum(up, down)",
            "after the last step the rate is below 0; it must be 0",
        ),
        (
            f"self.peak * {LESS}",
            LESS,
            "`peak` is not used",
        ),
        (
            LESS,
            "ops.maximum(up, down)",
            "it takes the higher of the two lines; take the lower",
        ),
        (
            "(self.total - self.warmup + 1)",
            "self.total",
            "the line down starts at step 0; it must leave the peak at the "
            "end of the warm-up",
        ),
        (
            "(self.total - self.warmup + 1)",
            "(self.total - self.warmup)",
            "one step too late: at step `warmup` the rate is still the peak",
        ),
        (
            "down = (self.total - step)",
            "down = (self.total - 1 - step)",
            "the rate is 0 one step too early; it must be 0 at step `total`",
        ),
        (
            f"return self.peak * {LESS}",
            "if step < self.warmup:\n"
            "            return self.peak * up\n"
            f"        return self.peak * {LESS}",
            "in a training `step` has no value yet, and `if` cannot look at "
            "it: use `ops.minimum` or `ops.where`",
        ),
    ),
)


def _run(pretrain: Any) -> Calls:
    module = sys.modules[pretrain.__module__.replace("pretraining", "bert")]
    tokenizer = Tokenizer(PIECES)
    batch = tokenizer(["a b c", "d e"], ["f g", "h"])
    labels = {
        "mlm_logits": np.where(
            batch["input_ids"] > 8, batch["input_ids"], -100
        ),
        "nsp_logits": np.array([0, 1]),
    }

    def run(steps, epochs):
        keras.utils.set_random_seed(0)
        sizes = {"V": len(PIECES), "D": 8, "L": 1, "N": 2, "F": 8, "P": 16}
        model = module.BertForPreTraining(module.Bert(**sizes, dropout=0.0))
        model(batch)
        rates = []
        told = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: rates.append(
                round(float(model.optimizer.learning_rate), 6)
            )
        )
        stream = ((batch, labels) for _ in range(100))
        with uncompiled():
            log = pretrain(
                model, stream, steps, 0.5, epochs, callbacks=[told], verbose=0
            )
        if log is None:
            return None
        names = "loss", "mlm_logits_accuracy", "nsp_logits_accuracy"
        return {
            "epochs": len(log.history["loss"]),
            "steps": int(model.optimizer.iterations),
            "the learning rate after each epoch": rates,
            "missing in what `fit` tells": [
                name for name in names if name not in log.history
            ],
            "losses": log.history["loss"],
        }

    return {"six steps in three epochs": partial(run, 6, 3)}


PRETRAIN = Part(
    "pretraining",
    "32",
    attempt=_run,
    mistakes=(
        (
            '"steps_per_epoch": steps // epochs',
            '"steps_per_epoch": steps',
            "every epoch has all steps: `steps` are those of the whole run",
        ),
        (
            "adamw(peak, steps)",
            "adamw(peak, steps // epochs)",
            "the rate is 0 after the first epoch: `adamw` takes the steps of "
            "the whole run",
        ),
        (
            "adamw(peak, steps)",
            "adamw(1e-3, steps)",
            "`peak` is not used",
        ),
        (
            '"epochs": epochs, ',
            "",
            "`epochs` is not used: it stops after the first",
        ),
        (
            "loss=dict.fromkeys(names, masked_loss)",
            'loss={"mlm_logits": masked_loss}',
            "the next sentence has no loss",
        ),
        (
            "loss=dict.fromkeys(names, masked_loss)",
            'loss={"nsp_logits": masked_loss}',
            "the masked words have no loss",
        ),
        (
            "metrics=dict.fromkeys(names, accuracy),",
            "",
            "`fit` tells no accuracy: give `compile` the metric for both "
            "outputs",
        ),
        (
            "adamw(peak, steps),",
            "keras.optimizers.Adam(peak),",
            "the rate stays the same: use `adamw(peak, steps)`",
        ),
        (
            "shuffle=False, **options",
            "shuffle=False, epochs=epochs, steps_per_epoch=steps // epochs, "
            "verbose=0",
            "`options` do not reach `fit`",
        ),
    ),
)
