"""How much do packed rows save, in fine-tuning and in pre-training?

    BERTBOOK_DATA=FOLDER python -m benchmarks.padding [sst2 qnli squad corpus2]

`bb.finetune` deals rows of similar length into a batch and pads them to the
next of eleven lengths; with `packed` several texts share a row. This counts the
places that are computed either way in one epoch, and what both cost: by the
arithmetic of `benchmarks.chips`, with attention that computes whole rows, and
for `mini` by steps timed in turns. For corpus2, every tenth document of
FOLDER/corpus2, it counts and times rows of 512 of `bertbook pretrain` with and
without `--packed`. What is not asked for is kept as it was.
"""

import itertools
import json
import math
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import bertbook as bb
from benchmarks import chips, turns
from bertbook.batches.batching import bucket_length
from bertbook.batches.feeding import to_steps, with_block_mask, with_weights
from bertbook.batches.packed_rows import packed_steps
from bertbook.batches.ragged import GROUPS, Rows, steps
from bertbook.config import BertConfig
from bertbook.pretraining.corpus import prepare, read_documents
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
    make_model,
)
from bertbook.pretraining.stream import ExampleStream
from bertbook.tasks.windows import check_stride, window_starts
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import make_optimizer

PAIRS = 5  # of timings
ROW = 512  # tokens of a row of pre-training
BATCH, BATCHES = 8, 4  # of such rows
LIMIT = 512  # tokens that a model takes
TASKS = {"sst2": (32, 128), "qnli": (32, 128), "squad": (16, 384)}


def main():
    """Measures what is asked for, and keeps the results."""
    bb.setup()
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    path = turns.RESULTS / "padding.json"
    results = json.loads(path.read_text("utf-8"))["results"]
    for name in sys.argv[1:] or [*TASKS, "corpus2"]:
        if name == "corpus2":
            results[name] = measure_corpus(tokenizer)
        else:
            batch_size, limit = TASKS[name]
            lengths = lengths_of(name, tokenizer, limit)
            results[name] = measure(lengths, batch_size, limit)
        print(name, results[name], flush=True)
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
    shapes = {}
    rows, count = make_rows(lengths), -(-len(lengths) // batch_size)
    for way, draw in (("by_length", steps), ("packed", packed_steps)):
        epoch = itertools.islice(draw(rows, batch_size, LIMIT, 0), count)
        shapes[way] = [x["input_ids"].shape for x, _, _ in epoch]
    found = {
        "rows": len(lengths),
        "mean_tokens": round(float(lengths.mean()), 1),
        "real_at_the_limit": share(lengths, len(lengths) * limit),
    }
    for way, each in shapes.items():
        found[f"real_{way}"] = share(lengths, sum(map(math.prod, each)))
        found[f"shapes_{way}"] = len(set(each))
    found["packed_row"] = shapes["packed"][0][1]
    for size in ("mini", "base"):
        config = BertConfig.named(size)
        dealt, packed = (
            sum(rows * row_flops(config, length) for rows, length in each)
            for each in shapes.values()
        )
        found[f"flops_over_packed_{size}"] = round(dealt / packed, 2)
    found["time_over_packed_mini"] = time_steps(lengths, batch_size)
    return found


def make_rows(lengths):
    """Returns rows of random pieces, each with a tag."""
    random = np.random.default_rng(0)
    ids = [random.integers(1_000, 16_000, n).tolist() for n in lengths]
    ones = [[1] * len(row) for row in ids]
    return Rows(ids, ones, targets={"": ones}, weights=ones)


def time_steps(lengths, batch_size):
    """Returns how long steps of `mini` take dealt by length, over packed.

    Both see the same texts, as many as `steps` sorts together.
    """
    order = np.random.default_rng(0).permutation(len(lengths))
    some = np.sort(lengths[order[: GROUPS * batch_size]])
    rows = make_rows(some)
    dealt = [
        rows.step(
            range(stop - batch_size, stop),
            bucket_length(int(some[stop - 1]), LIMIT),
            batch_size,
        )
        for stop in range(batch_size, len(some) + 1, batch_size)
    ]
    endless = packed_steps(rows, batch_size, LIMIT, 0)
    packed = list(itertools.islice(endless, GROUPS))
    model = bb.BertForTokenClassification(BertConfig.named("mini"))
    model.compile(make_optimizer(1e-4), classification_loss("sum"))

    def training(batches):
        return lambda: [model.train_on_batch(*batch) for batch in batches]

    peers = {"dealt": training(dealt)}
    found = turns.in_turns(training(packed), peers, PAIRS)["dealt"]
    turns.report("dealt by length", found)
    return found


def measure_corpus(tokenizer):
    """Returns the real tokens in a row of 512, with packing and without."""
    texts = Path(os.environ["BERTBOOK_DATA"]) / "corpus2"
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample.txt"
        documents = read_documents(sorted(texts.glob("*.txt.xz")))
        tenth = itertools.islice(documents, 0, None, 10)
        sample.write_text("\n\n".join(map("\n".join, tenth)) + "\n")
        corpus = prepare([sample], tokenizer, Path(folder) / "corpus")
        pieces = Pieces.of(tokenizer)
        found, trainings = {}, []
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
            trainings.append(pretraining(stream, len(tokenizer)))
    alone, packed = trainings
    found["time_of_a_row"] = turns.in_turns(alone, {"packed": packed})["packed"]
    turns.report("a packed row of 512", found["time_of_a_row"])
    return found


def pretraining(stream, vocab_size):
    """Returns a function that trains `mini` on the first rows of a stream."""
    batches = [
        next(to_steps(with_block_mask(with_weights(batch))))
        for batch, _ in itertools.islice(stream.batches(BATCH), BATCHES)
    ]
    config = BertConfig.named("mini", vocab_size=vocab_size)
    recipe = PretrainingRecipe(steps=1_000)
    model = make_model(config, config, recipe)
    compile_for_pretraining(model, recipe)
    return lambda: [model.train_on_batch(*batch) for batch in batches]


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
