"""Trains `data/models/mini/vocab.txt` on the corpus of the real data sets.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/make_vocabulary.py [FILE]

The corpus is FOLDER/corpus: textbooks, speeches and novels, in this order. The
same corpus gives the same bytes on every machine.
"""

import lzma
import os
import sys
from pathlib import Path

from bertbook.text.tokenizer import Tokenizer

TARGET = Path(__file__).resolve().parents[2] / "data/models/mini/vocab.txt"
PARTS = ("textbooks", "speeches", "novels")
VOCAB_SIZE = 8_192
# Every ASCII character that an uncased text can hold has a piece.
ALPHABET = "".join(
    chr(code) for code in range(0x21, 0x7F) if not chr(code).isupper()
)


def read_lines(corpus):
    """Yields the lines of the corpus, one paragraph each."""
    for part in PARTS:
        with lzma.open(
            corpus / f"{part}.txt.xz", "rt", encoding="utf-8"
        ) as file:
            yield from file


def main():
    """Writes the vocabulary, to its place or to the file that is named."""
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder:
        sys.exit("`BERTBOOK_DATA` must name the folder of real data sets.")
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    tokenizer = Tokenizer.train(
        read_lines(Path(folder) / "corpus"), VOCAB_SIZE, alphabet=ALPHABET
    )
    text = "\n".join(tokenizer.vocabulary) + "\n"
    target.write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(tokenizer)} pieces in {target.name}")


if __name__ == "__main__":
    main()
