"""How much could packed rows save in fine-tuning?

    BERTBOOK_DATA=FOLDER python -m benchmarks.padding

`bb.finetune` deals rows of similar length into a batch and pads them to the
next of eleven lengths. This counts the places that are computed so, and those
of rows of 512 tokens that each hold several examples, masked from each other,
and what both cost by the arithmetic of `benchmarks.chips`. Attention counts
whole rows, as without a kernel that skips what is masked.
"""

import numpy as np

import bertbook as bb
from benchmarks import chips, turns
from bertbook.batches.packing import find_places
from bertbook.batches.ragged import draw_batches
from bertbook.config import BertConfig
from bertbook.tasks.windows import check_stride, window_starts

ROW = 512
GROUP = 1_600  # examples that are packed together
TASKS = {"sst2": (32, 128), "qnli": (32, 128), "squad": (16, 384)}


def main():
    """Measures every data set and keeps the results."""
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    results = {
        name: measure(lengths_of(name, tokenizer, limit), batch_size, limit)
        for name, (batch_size, limit) in TASKS.items()
    }
    for name, found in results.items():
        print(name, found)
    turns.save("padding", results, ["bertbook", "numpy"])


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
    """Returns shares of real tokens, and the arithmetic that packing saves."""
    batches = draw_batches(lengths, batch_size, limit, (0, 0))
    widths = np.repeat([w for _, w in batches], [len(n) for n, _ in batches])
    order = np.random.default_rng(0).permutation(len(lengths))
    rows = 0
    for start in range(0, len(order), GROUP):
        group = lengths[order[start : start + GROUP]].tolist()
        rows += 1 + max(place.row for place in find_places(group, ROW))
    found = {
        "rows": len(lengths),
        "mean_tokens": round(float(lengths.mean()), 1),
        "real_at_the_limit": share(lengths, len(lengths) * limit),
        "real_by_length": share(lengths, widths.sum()),
        "real_packed": share(lengths, rows * ROW),
    }
    for size in ("mini", "base"):
        config = BertConfig.named(size)
        kinds, counts = np.unique(widths, return_counts=True)
        dealt = sum(
            n * row_flops(config, w) for w, n in zip(kinds, counts, strict=True)
        )
        packed = rows * row_flops(config, ROW)
        found[f"flops_over_packed_{size}"] = round(float(dealt / packed), 2)
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
