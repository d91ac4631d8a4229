"""Prepares the corpus of the long run: genres, held-out documents, shards.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/mix_corpus.py OUT [SIZE]

FOLDER holds corpus, corpus2 and squad, SIZE is that of the vocabulary. Then OUT
holds

    held_out/GENRE.txt   0.5 % of the documents of each genre, 4 at least,
                         never trained on
    held_out/today.txt   what `data/models/mini` of version 0.1.0 held out
    every.txt, once.txt  the rest: what every epoch reads, and the old novels
    vocabulary-V/        a tokenizer of V pieces, trained on the rest
    shards-V/            the rest as a `Corpus`, the novels read once
    genres-V/GENRE/      the held-out documents as one `Corpus` a genre

The same files give the same bytes. What is there already is not made again.
"""

import itertools
import json
import lzma
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import bertbook as bb
from bertbook.pretraining.corpus import (
    Corpus,
    prepare,
    read_documents,
    read_shard,
)
from bertbook.text.sentences import split_sentences

HELD_OUT = 0.005
LEAST_HELD_OUT = 4  # documents of a genre
# Every ASCII character that an uncased text can hold has a piece.
ALPHABET = "".join(
    chr(code) for code in range(0x21, 0x7F) if not chr(code).isupper()
)
LETTERS = 200  # characters of the vocabulary; the rest is rarer than 1 in 10^6
SEED = 0
ONCE = "novels"  # of the 19th century
GENRES = {
    "encyclopedia": [f"corpus2/encyclopedia-{i}" for i in range(1, 5)],
    "podcasts": [f"corpus2/podcasts-{i}" for i in range(1, 4)],
    "science_fiction": ["corpus2/fiction_1939_1970"],
    "government": ["corpus2/government"],
    "dialogue": ["corpus2/dialogue"],
    "textbooks": ["corpus/textbooks", "corpus2/textbooks_more"],
    "medicine": ["corpus2/medical_qa"],
    "questions_answers": ["corpus2/questions_answers"],
    "interviews": ["corpus2/interviews"],
    "web_email_news": ["corpus2/web_email_news"],
    "children_stories": ["corpus2/children_stories"],
    "tech_writing": ["corpus2/tech_writing"],
    "fiction_1900_1930": [f"corpus2/fiction_1900_1930-{i}" for i in (1, 2, 3)],
    "speeches": ["corpus/speeches"],
    ONCE: ["corpus/novels"],
}


def main():
    """Makes what is missing."""
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder or len(sys.argv) < 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 16_384
    if not (out / "genres.json").is_file():
        split(Path(folder), out)
    tokenizer = train_vocabulary(out, size)
    make_shards(out, tokenizer, size)


def split(folder: Path, out: Path) -> None:
    """Writes the held-out documents of each genre, and the rest, mixed."""
    (out / "held_out").mkdir(parents=True, exist_ok=True)
    articles = write_articles(folder, out)
    books = [
        folder / "corpus" / f"{part}.txt.xz"
        for part in ("textbooks", "speeches", "novels")
    ]
    today = find_held_out(books, articles, out / "today")
    rng = np.random.default_rng(SEED)
    rest: dict[str, list[str]] = {"every": [], "once": []}
    held_today: list[str] = []
    facts = {}
    for genre, names in {**GENRES, "articles": []}.items():
        files = [folder / f"{name}.txt.xz" for name in names] or [articles]
        texts = ["\n".join(lines) for lines in read_documents(files)]
        held_today += [text for text in texts if text in today]
        texts = [text for text in texts if text not in today]
        count = max(LEAST_HELD_OUT, round(HELD_OUT * len(texts)))
        chosen = set(rng.choice(len(texts), count, replace=False).tolist())
        held = [text for i, text in enumerate(texts) if i in chosen]
        kept = [text for i, text in enumerate(texts) if i not in chosen]
        write_documents(out / "held_out" / f"{genre}.txt", held)
        rest["once" if genre == ONCE else "every"] += kept
        facts[genre] = {
            "documents": len(kept),
            "held_out": len(held),
            "words": sum(len(text.split()) for text in kept),
        }
    write_documents(out / "held_out/today.txt", held_today)
    for name, texts in rest.items():
        order = rng.permutation(len(texts))
        write_documents(out / f"{name}.txt", [texts[i] for i in order])
    text = json.dumps(facts, indent=2) + "\n"
    (out / "genres.json").write_text(text, encoding="utf-8")  # written last
    print(text)


def write_articles(folder: Path, out: Path) -> Path:
    """Writes the paragraphs of the SQuAD training articles as documents."""
    path = out / "articles.txt"
    if not path.is_file():
        packed = folder / "squad" / "train-v1.1.json.xz"
        with lzma.open(packed, "rt", encoding="utf-8") as file:
            articles = json.load(file)["data"]
        text = "\n\n".join(
            "\n".join(
                " ".join(paragraph["context"].split())
                for paragraph in article["paragraphs"]
            )
            for article in articles
        )
        path.write_text(text + "\n", encoding="utf-8")
    return path


def find_held_out(books: list[Path], articles: Path, folder: Path) -> set[str]:
    """Returns the documents that `mini` of version 0.1.0 was not trained on.

    They are found by their ids, in the shards that its recipe makes. Chance
    chose them while shards were filled, so that they depend on its vocabulary,
    8,192 pieces of the books, which is trained anew.
    """
    files = [*books, articles]
    lines = itertools.chain.from_iterable(map(read_packed, books))
    tokenizer = bb.Tokenizer.train(lines, 8_192, alphabet=ALPHABET)
    corpus = prepare(files, tokenizer, folder)
    held = set()
    for path in corpus.shards("held_out"):
        shard = read_shard(path)
        starts = shard.sentences[shard.documents]
        held |= {
            shard.tokens[start:end].tobytes()
            for start, end in zip(starts[:-1], starts[1:], strict=True)
        }
    found = set()
    for lines in read_documents(files):
        sentences = [s for line in lines for s in split_sentences(line)]
        rows = tokenizer.encode_pieces(sentences)
        ids = np.array([i for row in rows for i in row], "uint16")
        if ids.tobytes() in held:
            found.add("\n".join(lines))
    return found


def read_packed(path: Path) -> Iterator[str]:
    """Yields the lines of a packed file."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from file


def write_documents(path: Path, texts: list[str]) -> None:
    """Writes documents with an empty line between them."""
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def train_vocabulary(out: Path, size: int) -> bb.Tokenizer:
    """Returns a tokenizer of `size` pieces, trained where there is none."""
    folder = out / f"vocabulary-{size}"
    if not (folder / "vocab.txt").is_file():
        tokenizer = bb.Tokenizer.train(
            read_lines(out), size, alphabet=ALPHABET, limit_alphabet=LETTERS
        )
        tokenizer.save_pretrained(folder)
    return bb.Tokenizer.from_pretrained(folder)


def read_lines(out: Path) -> Iterator[str]:
    """Yields the lines that are trained on."""
    for name in ("every", "once"):
        with open(out / f"{name}.txt", encoding="utf-8") as file:
            yield from file


def make_shards(out: Path, tokenizer: bb.Tokenizer, size: int) -> None:
    """Writes the shards of the rest and of every genre's held-out part."""
    folder = out / f"shards-{size}"
    parts = [
        prepare([out / f"{name}.txt"], tokenizer, folder / name, held_out=0)
        for name in ("every", "once")
    ]
    join(parts, folder)
    for path in sorted((out / "held_out").glob("*.txt")):
        prepare(
            [path], tokenizer, out / f"genres-{size}" / path.stem, held_out=0
        )


def join(parts: list[Corpus], folder: Path) -> None:
    """Makes one corpus of two, the shards of the second read once."""
    every, once = parts
    for number, path in enumerate([*every.shards(), *once.shards()]):
        link = folder / f"train-{number:05d}.safetensors"
        if not link.exists():
            os.link(path, link)
    record = {
        **every.record,
        "files": every.record["files"] + once.record["files"],
        "shards": {
            "train": len(every.shards()) + len(once.shards()),
            "held_out": 0,
        },
        "once": len(once.shards()),
        "held_out": HELD_OUT,
    }
    for name in ("documents", "sentences", "tokens"):
        record[name] = every.record[name] + once.record[name]
    text = json.dumps(record, indent=2) + "\n"
    (folder / "corpus.json").write_text(text, encoding="utf-8")
    print(f"{folder.name}: {record['tokens']:,} tokens, {record['shards']}")


if __name__ == "__main__":
    main()
