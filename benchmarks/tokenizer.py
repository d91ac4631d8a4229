"""How fast is our tokenizer beside the bare Rust library?

    python -m benchmarks.tokenizer

Ours: `Tokenizer(texts)`, which returns padded arrays. The peer: the same
library called bare, `encode_batch` and the ids of each row. 512 texts a call,
the same threads. The Python engine is timed once and printed, not bounded.
"""

import time

from tokenizers import BertWordPieceTokenizer

import bertbook as bb
from benchmarks import texts, turns

ROWS = 512


def main():
    """Times both on short and on long texts, and keeps the result."""
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    bare = BertWordPieceTokenizer(tokenizer.ids, lowercase=True)
    results = {}
    for name, lines in (
        ("sentences", texts.sentences(872)),
        ("paragraphs", texts.paragraphs(1_626)),
    ):
        calls = [lines[i : i + ROWS] for i in range(0, len(lines), ROWS)] * 8
        check_same(tokenizer, bare, lines)

        def ours(calls=calls):
            for call in calls:
                tokenizer(call)

        def theirs(calls=calls):
            for call in calls:
                [row.ids for row in bare.encode_batch(call)]

        results |= turns.in_turns(ours, {name: theirs})
        turns.report(name, results[name])
        results[f"{name}, Python engine"] = time_python(tokenizer, lines)
    turns.save("tokenize", results, ["bertbook", "tokenizers"])


def check_same(tokenizer, bare, lines):
    """Raises where a row has other ids."""
    batch = tokenizer(lines)
    rows = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    for line, (ids, mask) in zip(lines, rows, strict=True):
        if ids[mask == 1].tolist() != bare.encode(line).ids:
            raise ValueError(f"The ids differ. Received: {line!r}.")


def time_python(tokenizer, lines):
    """Returns how many times slower the Python engine is, once."""
    python = bb.Tokenizer(tokenizer.vocabulary, engine="python")
    seconds = []
    for engine in (tokenizer, python):
        start = time.perf_counter()
        engine(lines)
        seconds.append(time.perf_counter() - start)
    ratio = round(seconds[1] / seconds[0], 1)
    print(f"  the Python engine takes {ratio} times as long")
    return {"times_slower": ratio}


if __name__ == "__main__":
    main()
