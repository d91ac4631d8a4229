"""What `mini` remembers of its corpus: kept runs of lab 32_memory_and_bias.

    BERTBOOK_DATA=DATA python tools/models/mix_corpus.py FOLDER
    BERTBOOK_DATA=DATA python -m experiments.memory FOLDER [NAME ...]

The first command makes the corpus of `mini` again, with the same held-out
documents; genres.json tells, and so does the number of tokens. Four
measurements follow; with names, only these are made anew.

documents: documents that were read in training beside documents of the same
genre that were held out. Rows of 128 tokens, 15% of them hidden, [MASK] at
each. Kept are the mean nats of every document, by `mini` and by unigrams, and
how many characters it has.

passages: stretches of 16 tokens, by how often they stand in what was read. Four
tokens in their middle are hidden; a passage is recited if all four come back.
Stretches are counted by a hash, one in 8 of them, and one that a held-out
document shares with what was read counts as read.

formulas: phrases that most readers of English know, each with one word that is
hidden and one that is exchanged in the control. How often each stands in what
was read, and what its hidden word costs by unigrams; the lab asks `mini`.

pronouns: for each noun of a list, how often `he` and how often `she` is the
first of the two that follows it in the same sentence.

Writes data/runs/memory.json: scores and counts only, and the formulas; no text
of the corpus.
"""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
from keras import ops

import bertbook as bb
from bertbook.files import read_json
from bertbook.pretraining.corpus import Corpus, read_documents, read_shard
from bertbook.text.sentences import split_sentences

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "data" / "runs" / "memory.json"
VOCABULARY = 16_384
LENGTH, ROWS = 128, 4  # tokens of a row, rows of a document at most
LEAST = 32  # tokens of a document that is asked about
TIMES, FEWEST = 3, 40  # documents that were read: for one held out, at least
MASK_RATE = 0.15
PASSAGE, HIDDEN = 16, slice(6, 10)  # tokens, and which of them are hidden
SAMPLE = 8  # one passage in so many is counted
PASSAGES = 1_000  # of each number of times, at most
TIMES_READ = (0, 1, 2, 4, 16, 64)  # lower ends; 0 is held out
# Sentence, formula in it with its last word in brackets, and the control: which
# word is exchanged, and for which.
FORMULAS = (
    ("The president of the {} spoke.", "united [states]", "united other"),
    (
        "She said: {}, welcome to the show.",
        "ladies and [gentlemen]",
        "and like",
    ),
    ("Ask your {} about it.", "health care [provider]", "health child"),
    ("In 1991 the {} came to an end.", "soviet [union]", "soviet long"),
    ("The doctor looks for {}.", "signs and [symptoms]", "signs names"),
    ("{} there was a queen.", "once upon a [time]", "upon inside"),
    ("It was raining {}.", "cats and [dogs]", "cats stones"),
    ("{}, he said.", "better late than [never]", "late small"),
    ("{}, he said.", "practice makes [perfect]", "practice water"),
    ("{}, he said.", "actions speak louder than [words]", "actions doors"),
    ("He told us the {}.", "whole nine [yards]", "nine blue"),
    ("The coin says: {}.", "in god we [trust]", "god rooms"),
    ("{}, that is the question.", "to be or not to [be]", "not how"),
    (
        "It was the best of times, {}.",
        "it was the worst of [times]",
        "worst end",
    ),
    ("{} our fathers came.", "four score and seven years [ago]", "years doors"),
    ("Ask what {}.", "you can do for your [country]", "do pay"),
    ("A government {}.", "by the people, for the [people]", "people office"),
    ("{} was their aim.", "the pursuit of [happiness]", "pursuit weight"),
    ("They met {}.", "for the first [time]", "first white"),
    ("{}, it may rain.", "on the other [hand]", "other green"),
    ("Come back {}.", "as soon as [possible]", "soon green"),
    ("She lives in {}.", "new york [city]", "york paper"),
    ("The {} spoke first.", "prime [minister]", "prime quiet"),
    ("They study {}.", "artificial [intelligence]", "artificial green"),
    ("{}, I thank my wife.", "last but not [least]", "last warm"),
    ("It is in the {}.", "public [domain]", "public quiet"),
    ("They looked at the {}.", "stock [market]", "stock quiet"),
    ("It was built in the {}.", "nineteenth [century]", "nineteenth warm"),
    ("It happened during {}.", "world [war]", "world paper"),
    ("It is a {} service.", "machine [learning]", "machine paper"),
)
# Nouns of one piece each; those of two sexes and of things are controls.
NOUNS = {
    "jobs": "actor artist baker captain clerk coach cook designer doctor "
    "driver engineer farmer guard journalist judge lawyer nurse officer "
    "painter pilot poet president professor programmer scientist secretary "
    "servant singer soldier student surgeon teacher waiter writer",
    "people": "person passenger visitor neighbor stranger customer child "
    "patient",
    "things": "river letter machine song house window garden table train book "
    "city ship",
    "women": "mother queen sister girl",
    "men": "father king brother boy",
}
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # of the hash


def main():
    """Measures both, and writes the file."""
    data = os.environ.get("BERTBOOK_DATA")
    if not data or len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, model = Path(sys.argv[1]), load_model()
    record = read_json(folder / f"shards-{VOCABULARY}" / "corpus.json")
    card = read_json(ROOT / "data" / "models" / "mini" / "scores.json")
    if read_json(folder / "genres.json") != card["genres"]:
        sys.exit(f"{folder} does not hold the corpus of `mini`.")
    corpus = Corpus(folder / f"shards-{VOCABULARY}", record)
    measures = {
        "passages": lambda: measure_passages(model, corpus, folder),
        "formulas": lambda: measure_formulas(model, corpus, folder),
        "pronouns": lambda: count_pronouns(folder),
        "documents": lambda: measure_documents(
            model, corpus, folder, Path(data)
        ),
    }
    kept = read_json(KEPT) if KEPT.is_file() else {}
    for name in sys.argv[2:] or measures:
        kept[name] = measures[name]()
    text = json.dumps(kept, indent=1) + "\n"
    KEPT.write_text(text.replace(",\n    ", ", "), encoding="utf-8")


def load_model():
    """Returns `mini`."""
    return bb.BertForMaskedLM.from_pretrained("mini")


def score(model, ids, hidden, batch_size=64):
    """Returns nats and whether the best guess is right, hidden tokens alone.

    `ids` and `hidden`, which tokens become [MASK], are `(B, S)`.
    """
    nats, right = [], []
    tok = model.tokenizer
    for start in range(0, len(ids), batch_size):
        own, at = ids[start : start + batch_size], hidden[start:][:batch_size]
        shown = np.where(at, tok.mask_token_id, own).astype("int32")
        real = (own != tok.pad_token_id).astype("int32")
        logits = model({"input_ids": shown, "attention_mask": real})
        logits = ops.convert_to_numpy(logits)[at].astype("float64")  # (n, V)
        top = logits.max(axis=-1)
        total = np.exp(logits - top[:, None]).sum(axis=-1)
        target = own[at]
        mine = logits[np.arange(len(target)), target]
        nats.append(top + np.log(total) - mine)
        right.append(logits.argmax(axis=-1) == target)
    return np.concatenate(nats), np.concatenate(right)


def measure_documents(model, corpus, folder, data):
    """Returns nats of documents, genre by genre: read, and held out."""
    counts = count_pieces(corpus)
    surprise = -np.log((counts + 1) / (counts + 1).sum())
    held_today = set(read_texts([folder / "held_out" / "today.txt"]))
    found = {}
    for genre, paths in sources(folder, data).items():
        held = set(read_texts([folder / "held_out" / f"{genre}.txt"]))
        every = read_texts(paths)
        parts = {"read": [], "held out": []}
        for text in every:
            is_held = text in held or text in held_today
            parts["held out" if is_held else "read"].append(text)
        rng = np.random.default_rng(0)
        count = max(FEWEST, TIMES * len(parts["held out"]))
        order = rng.permutation(len(parts["read"]))[:count]
        parts["read"] = [parts["read"][i] for i in order]
        found[genre] = {
            part: measure_texts(model, texts, surprise, rng)
            for part, texts in parts.items()
        }
        sizes = {p: len(row["nats"]) for p, row in found[genre].items()}
        means = {p: np.mean(row["nats"]) for p, row in found[genre].items()}
        print(genre, sizes, means, flush=True)
    return found


def sources(folder, data):
    """Returns the files of every genre, as `mix_corpus.py` reads them."""
    sys.path.insert(0, str(ROOT / "tools" / "models"))
    from mix_corpus import GENRES

    files = {
        genre: [data / f"{name}.txt.xz" for name in names]
        for genre, names in GENRES.items()
    }
    return files | {"articles": [folder / "articles.txt"]}


def read_texts(paths):
    """Returns the documents of files, each as one text."""
    return ["\n".join(lines) for lines in read_documents(paths)]


def measure_texts(model, texts, surprise, rng):
    """Returns nats of every text, by the model and by unigrams."""
    tok, rows, of_text = model.tokenizer, [], []
    for number, text in enumerate(texts):
        sentences = [
            s for line in text.split("\n") for s in split_sentences(line)
        ]
        ids = np.array([i for s in tok.encode_pieces(sentences) for i in s])
        if len(ids) < LEAST:
            continue
        size = LENGTH - 2
        starts = np.arange(0, max(1, len(ids) - size + 1), size)
        for start in rng.permutation(starts)[:ROWS]:
            part = ids[start : start + size]
            row = np.full(LENGTH, tok.pad_token_id)
            row[: len(part) + 2] = tok.cls_token_id, *part, tok.sep_token_id
            rows.append(row)
            of_text.append(number)
    ids, of_text = np.array(rows), np.array(of_text)
    special = [tok.pad_token_id, tok.cls_token_id, tok.sep_token_id]
    lots = np.where(np.isin(ids, special), 2.0, rng.random(ids.shape))
    count = np.rint(MASK_RATE * (ids != tok.pad_token_id).sum(axis=1))
    hidden = lots.argsort(axis=1).argsort(axis=1) < count[:, None]
    nats, _ = score(model, ids, hidden)
    owner = np.broadcast_to(of_text[:, None], ids.shape)[hidden]
    return {
        "nats": mean_by(owner, nats),
        "unigrams": mean_by(owner, surprise[ids[hidden]]),
    }


def mean_by(owner, values):
    """Returns the mean of the values of each owner that has any."""
    total, count = np.bincount(owner, values), np.bincount(owner)
    means = total[count > 0] / count[count > 0]
    return [round(float(mean), 3) for mean in means]


def measure_passages(model, corpus, folder):
    """Returns what `mini` recites, by how often it has read a passage."""
    hashes, passages = [], []
    for path in corpus.shards():
        found = sampled(read_shard(path))
        hashes.append(found[0])
        passages.append(found[1])
    hashes, passages = np.concatenate(hashes), np.concatenate(passages)
    seen, first, times = np.unique(
        hashes, return_index=True, return_counts=True
    )
    passages = passages[first]
    held = [
        sampled(read_shard(path))
        for genre in sorted((folder / f"genres-{VOCABULARY}").iterdir())
        for path in Corpus(genre, read_json(genre / "corpus.json")).shards()
    ]
    held_hashes = np.concatenate([one for one, _ in held])
    shared = np.isin(held_hashes, seen)
    held = np.concatenate([rows for _, rows in held])[~shared]
    rng, bins = np.random.default_rng(0), []
    ends = *TIMES_READ[1:], np.inf
    for low, high in zip(TIMES_READ, ends, strict=True):
        chosen = held if low == 0 else passages[(times >= low) & (times < high)]
        of_these = times[(times >= low) & (times < high)] if low else [0]
        rows = rng.permutation(chosen)[:PASSAGES].astype("int64")
        bins.append(
            {"least": low, "mean": round(float(np.mean(of_these)), 2)}
            | {"passages": len(chosen), "asked": len(rows)}
            | recite(model, rows)
        )
        print(bins[-1], flush=True)
    return {
        "held out": len(held_hashes),
        "of these also read": int(shared.sum()),
        "bins": bins,
    }


def measure_formulas(model, corpus, folder):
    """Returns how often formulas were read, and the price of their words."""
    counts = count_pieces(corpus)
    surprise = -np.log((counts + 1) / (counts + 1).sum())
    names = "every.txt", "once.txt"
    texts = [(folder / name).read_bytes().lower() for name in names]
    found = []
    for sentence, formula, exchange in FORMULAS:
        old, new = exchange.split()
        changed = formula.replace(old, new, 1)
        word = formula.split("[")[1].rstrip("]")
        row = {"sentence": sentence, "formula": formula, "changed": changed}
        for name in ("formula", "changed"):
            phrase = row[name].replace("[", "").replace("]", "").encode()
            row[f"times {name}"] = sum(text.count(phrase) for text in texts)
        price = surprise[model.tokenizer.ids[word]]
        found.append(row | {"unigrams": round(float(price), 3)})
        print(found[-1], flush=True)
    return found


def count_pieces(corpus):
    """Returns how often each piece was read in one epoch, `(V,)`."""
    counts = np.zeros(VOCABULARY, "int64")
    for path in corpus.shards():
        counts += np.bincount(read_shard(path).tokens, minlength=VOCABULARY)
    return counts


def count_pronouns(folder):
    """Returns how often `he` and `she` follow a noun, by kind and noun."""
    kinds = {kind: nouns.split() for kind, nouns in NOUNS.items()}
    nouns = "|".join(noun for kind in kinds.values() for noun in kind)
    pattern = re.compile(rf"\b({nouns})\b[^.!?\n]*?\b(he|she)\b")
    counts = {noun: [0, 0] for kind in kinds.values() for noun in kind}
    for name in ("every.txt", "once.txt"):
        with open(folder / name, encoding="utf-8") as file:
            for line in file:
                for noun, pronoun in pattern.findall(line.lower()):
                    counts[noun][pronoun == "she"] += 1
    return {
        kind: {noun: counts[noun] for noun in nouns}
        for kind, nouns in kinds.items()
    }


def sampled(shard):
    """Returns hashes of passages, one in 8, and the passages, `(n, 16)`.

    No passage reaches over the end of a document.
    """
    tokens = np.asarray(shard.tokens)
    ends = np.asarray(shard.sentences)[np.asarray(shard.documents)]
    document = np.searchsorted(ends, np.arange(len(tokens)), side="right")
    count = len(tokens) - PASSAGE + 1
    hashes = np.zeros(count, "uint64")
    for i in range(PASSAGE):
        hashes = hashes * MULTIPLIER + tokens[i : i + count] + np.uint64(1)
    hashes ^= hashes >> np.uint64(29)
    inside = document[:count] == document[PASSAGE - 1 :]
    chosen = np.flatnonzero(inside & (hashes % np.uint64(SAMPLE) == 0))
    return hashes[chosen], tokens[chosen[:, None] + np.arange(PASSAGE)]


def recite(model, rows):
    """Returns how much of the hidden middle of passages comes back."""
    tok, size = model.tokenizer, len(rows)
    ends = np.full((size, 1), tok.cls_token_id), np.full((size, 1), 0)
    ids = np.concatenate([ends[0], rows, ends[1] + tok.sep_token_id], axis=1)
    hidden = np.zeros(ids.shape, bool)
    hidden[:, 1:-1][:, HIDDEN] = True
    found = score(model, ids, hidden)
    nats, right = (values.reshape(size, -1) for values in found)
    return {
        "recited": round(float(right.all(axis=1).mean()), 4),
        "right": round(float(right.mean()), 4),
        "nats": round(float(nats.mean()), 3),
        "nats_error": round(float(nats.mean(axis=1).std() / size**0.5), 3),
    }


if __name__ == "__main__":
    main()
