"""How much could packed rows save in fine-tuning, and do in pre-training?

    BERTBOOK_DATA=FOLDER python -m benchmarks.padding

`bb.finetune` deals rows of similar length into a batch and pads them to the
next of eleven lengths. This counts the places that are computed so, and those
of packed rows, which each hold several examples, masked from each other: with
all of 1,600 examples to choose from, and with those of one batch alone, so
that an update sees as many examples as before. What both cost is arithmetic,
by `benchmarks.chips`, with attention that computes whole rows; and for `mini`,
batch by batch, steps timed in turns. Last come the real tokens in a row of
512, by `bertbook pretrain` with and without `--packed`, on FOLDER/corpus2.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import bertbook as bb
from benchmarks import chips, turns
from bertbook.batches.packing import find_places, pack
from bertbook.batches.ragged import Rows, draw_batches
from bertbook.config import BertConfig
from bertbook.pretraining.corpus import prepare
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.stream import ExampleStream
from bertbook.tasks.windows import check_stride, window_starts
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import make_optimizer

ROW = 512
ROW_LENGTHS = (128, 256, 512)  # of rows that hold one batch
TIMED = 32  # batches
GROUP = 1_600  # examples that are packed together
TASKS = {"sst2": (32, 128), "qnli": (32, 128), "squad": (16, 384)}


def main():
    """Measures every data set, then the corpus, and keeps the results."""
    bb.setup()
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    results = {}
    for name, (batch_size, limit) in TASKS.items():
        lengths = lengths_of(name, tokenizer, limit)
        results[name] = measure(lengths, batch_size, limit)
        print(name, results[name], flush=True)
    results["corpus2"] = measure_corpus(tokenizer)
    print("corpus2", results["corpus2"])
    turns.save("padding", results, ["bertbook", "keras", "numpy"])


def lengths_of(name, tokenizer, limit):
    """Returns the tokens of each row of a training set, `(R,)`.

    A passage of SQuAD that is too long gives several rows, windows that start
    half of their room apart, as in `finetune`.
    """
    data = bb.load_dataset(name, "train")
    if name != "squad":
        texts, pairs = data["text"], data.get("text_pair")
        mask = tokenizer(texts, pairs, max_length=limit)["attention_mask"]
        return mask.sum(axis=1)
    question = count_ids(tokenizer, data["question"])
    context = count_ids(tokenizer, data["context"])
    lengths = []
    for asked, told in zip(question, context, strict=True):
        room = limit - asked - 3
        starts = window_starts(told, room, check_stride(None, room, limit))
        lengths += [asked + 3 + min(room, told - start) for start in starts]
    return np.array(lengths)


def count_ids(tokenizer, texts):
    """Returns the pieces of each text, without [CLS] and [SEP]."""
    known = dict.fromkeys(texts, 0)
    for text in known:
        known[text] = len(tokenizer.encode(text)) - 2
    return [known[text] for text in texts]


def measure(lengths, batch_size, limit):
    """Returns shares of real tokens, and what packing saves."""
    batches = draw_batches(lengths, batch_size, limit, (0, 0))
    widths = np.repeat([w for _, w in batches], [len(n) for n, _ in batches])
    order = np.random.default_rng(0).permutation(len(lengths))
    rows = count_rows(lengths[order], GROUP, ROW)
    found = {
        "rows": len(lengths),
        "mean_tokens": round(float(lengths.mean()), 1),
        "real_at_the_limit": share(lengths, len(lengths) * limit),
        "real_by_length": share(lengths, widths.sum()),
        "real_packed": share(lengths, rows * ROW),
    }
    by_batch = {
        length: count_rows(lengths[order], batch_size, length)
        for length in ROW_LENGTHS
        if length >= limit
    }
    for size in ("mini", "base"):
        config = BertConfig.named(size)
        kinds, counts = np.unique(widths, return_counts=True)
        dealt = sum(
            n * row_flops(config, w) for w, n in zip(kinds, counts, strict=True)
        )
        packed = rows * row_flops(config, ROW)
        alone = {n * row_flops(config, w): w for w, n in by_batch.items()}
        best = min(alone)
        found |= {
            f"flops_over_packed_{size}": round(float(dealt / packed), 2),
            f"flops_over_packed_by_batch_{size}": round(dealt / best, 2),
            f"row_by_batch_{size}": alone[best],
        }
    length = found["row_by_batch_mini"]
    found["real_by_batch_mini"] = share(lengths, by_batch[length] * length)
    some = lengths[order[: TIMED * batch_size]]
    found["time_over_packed_by_batch_mini"] = time_steps(
        some, batch_size, limit, length
    )
    return found


def count_rows(lengths, group, row):
    """Returns the rows that hold all examples, packed a group at a time."""
    parts = np.split(lengths, range(group, len(lengths), group))
    return sum(
        1 + max(place.row for place in find_places(part.tolist(), row))
        for part in parts
    )


def time_steps(lengths, batch_size, limit, row):
    """Returns how long steps of `mini` take dealt by length, over packed.

    The head is that for tags, which takes packed rows as they are. The texts
    are random pieces.
    """
    random = np.random.default_rng(0)
    ids = [random.integers(1_000, 16_000, n).tolist() for n in lengths]
    rows = Rows(
        ids,
        [[0] * len(row) for row in ids],
        targets={"": [[1] * len(row) for row in ids]},
        weights=[[1] * len(row) for row in ids],
    )
    dealt = [
        rows.step(numbers.tolist(), length, len(numbers))
        for numbers, length in draw_batches(lengths, batch_size, limit, (0, 0))
    ]
    packed = []
    for start in range(0, len(ids), batch_size):
        numbers = range(start, min(start + batch_size, len(ids)))
        batch = rows.inputs(numbers, int(lengths.max()), len(numbers))
        x, _ = pack(batch, row)
        real = (x["attention_mask"].sum(axis=2) > 0).astype("float32")
        packed.append((x, real.astype("int32"), real / real.sum()))
    model = bb.BertForTokenClassification(BertConfig.named("mini"))
    model.compile(make_optimizer(1e-4), classification_loss("sum"))

    def training(steps):
        return lambda: [model.train_on_batch(*step) for step in steps]

    found = turns.in_turns(training(packed), {"dealt": training(dealt)})
    turns.report("dealt by length", found["dealt"])
    return found["dealt"]


def measure_corpus(tokenizer):
    """Returns the real tokens in a row of 512, with packing and without."""
    texts = Path(os.environ["BERTBOOK_DATA"]) / "corpus2"
    with tempfile.TemporaryDirectory() as folder:
        files = sorted(texts.glob("*.txt.xz"))
        corpus = prepare(files, tokenizer, folder)
        pieces = Pieces.of(tokenizer)
        found = {}
        for packed in (False, True):
            settings = ExampleSettings(max_length=ROW, packed=packed)
            stream = ExampleStream(corpus, pieces, settings)
            tokens, rows = 0, 0
            for examples in stream.epoch():
                tokens += int((examples["input_ids"] != pieces.pad).sum())
                rows += len(examples["input_ids"])
            found["packed" if packed else "one_a_row"] = {
                "rows": rows,
                "real_tokens_a_row": round(tokens / rows, 1),
            }
    return found


def row_flops(config, length):
    """Returns the FLOPs of a row whose tokens all pass through every layer."""
    length, width = int(length), config.hidden_size
    heads = 2 * (length - 1) * (width**2 + width * config.vocab_size)
    return chips.forward_flops(config, length, length - 1) - heads


def share(lengths, places):
    """Returns how much of so many places is real."""
    return round(float(lengths.sum() / places), 3)


if __name__ == "__main__":
    main()
