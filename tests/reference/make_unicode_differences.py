"""Finds where our tables of Unicode and those of the Rust library differ.

    .venv/bin/python tests/reference/make_unicode_differences.py

`wordpiece` asks Python's `unicodedata`, the library `tokenizers` carries tables
of its own, and each is of another version of Unicode. Every code point is put
into a few contexts, cleaned and split by both. For one that comes out
differently the cause is looked for by asking both, step by step: white space,
what cleaning removes, punctuation, CJK; and for uncased models decomposition,
nonspacing marks, the order of marks, and lower case.
"""

import json
import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import PreTokenizedString, normalizers, pre_tokenizers

from bertbook.text import wordpiece

LIST = Path(__file__).with_name("unicode_differences.json")
CASES = {"uncased": True, "cased": False}
CONTEXTS = (
    "a{c}b {c}{c}c",
    "\u0301{c}",
    "{c}\u0316",
    "\u0315{c}",
    "a\u0301{c}",
)
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
BLOCK = 256  # code points that are compared in one text

split = pre_tokenizers.BertPreTokenizer()
decompose = normalizers.NFD()
lower = normalizers.Lowercase()
OFF = {
    "clean_text": False,
    "handle_chinese_chars": False,
    "strip_accents": False,
    "lowercase": False,
}
remove, isolate, drop_marks = (
    normalizers.BertNormalizer(**{**OFF, step: True})
    for step in ("clean_text", "handle_chinese_chars", "strip_accents")
)


def words_in_rust(text, lowercase):
    """Returns (word, start, end) of a text, as the library cuts it."""
    parts = PreTokenizedString(text)
    parts.normalize(normalizers.BertNormalizer(lowercase=lowercase).normalize)
    split.pre_tokenize(parts)
    splits = parts.get_splits("original", "char")
    return [(word, start, end) for word, (start, end), _ in splits]


def words_in_python(text, lowercase):
    """Returns (word, start, end) of a text, as `wordpiece` cuts it."""
    characters = wordpiece.clean(text, lowercase, lowercase)
    return [
        ("".join(c for c, _ in word), word[0][1], word[-1][1] + 1)
        for word in wordpiece.split_words(characters)
    ]


def differ(text, lowercase):
    """Returns whether the two cut a text differently."""
    return words_in_rust(text, lowercase) != words_in_python(text, lowercase)


def in_context(code):
    """Returns the texts in which a code point is tried."""
    return [context.format(c=chr(code)) for context in CONTEXTS]


def differences(lowercase):
    """Returns all code points that come out differently."""
    found = []
    for start in range(0, len(CODE_POINTS), BLOCK):
        block = CODE_POINTS[start : start + BLOCK]
        if differ(
            "\n".join(t for c in block for t in in_context(c)), lowercase
        ):
            found += [
                code
                for code in block
                if any(differ(text, lowercase) for text in in_context(code))
            ]
    return found


def kind(character):
    """Returns how each side splits at a character that cleaning keeps."""
    space, punctuation = (
        character.isspace(),
        wordpiece.is_punctuation(character),
    )
    ours = (
        "white space" if space else "punctuation" if punctuation else "letter"
    )
    words = [word for word, _ in split.pre_tokenize_str(f"a{character}b")]
    theirs = {1: "letter", 2: "white space", 3: "punctuation"}[len(words)]
    return ours, theirs


def cause(code, lowercase):
    """Says at which step the two sides part, "" where they do not."""
    character = chr(code)
    found = []
    removed = remove.normalize_str(f"a{character}") == "a"
    if removed != wordpiece.is_control(character):
        found.append(f"removed by {'the library' if removed else 'us'} only")
    elif not removed and kind(character)[0] != kind(character)[1]:
        found.append("{} for us, {} for the library".format(*kind(character)))
    isolated = isolate.normalize_str(character) != character
    if isolated != wordpiece.is_cjk(character):
        found.append(f"CJK for {'the library' if isolated else 'us'} only")
    if lowercase:
        found += causes_of_case(character)
    return ", ".join(found)


def causes_of_case(character):
    """Lists the steps of uncased models at which the two sides part."""
    found = []
    parts = unicodedata.normalize("NFD", character)
    if decompose.normalize_str(character) != parts:
        found.append("another decomposition")
    kept = "".join(p for p in parts if unicodedata.category(p) != "Mn")
    if drop_marks.normalize_str(f"a{character}") != f"a{kept}":
        found.append(
            f"nonspacing mark for {'us' if kept == '' else 'the library'} only"
        )
    marks = [f"{character}\u0316"] + [f"{m}{character}" for m in "\u0315\u0301"]
    if any(
        decompose.normalize_str(text) != unicodedata.normalize("NFD", text)
        for text in marks
    ):
        found.append("another combining class")
    if lower.normalize_str(character) != character.lower():
        found.append("another lower case")
    return found


def versions():
    """Returns whose tables were compared."""
    return {
        "unidata_version": unicodedata.unidata_version,
        "tokenizers": tokenizers.__version__,
    }


def stored():
    """Returns the list: versions, and the cause of each code point by case."""
    record = json.loads(LIST.read_text("utf-8"))
    for case in CASES:
        record[case] = {
            int(name.removeprefix("U+"), 16): why
            for why, names in record[case].items()
            for name in names.split()
        }
    return record


def main():
    """Writes the list."""
    record = versions()
    for case, lowercase in CASES.items():
        by_cause = {}
        for code in differences(lowercase):
            names = by_cause.setdefault(cause(code, lowercase), [])
            names.append(f"U+{code:04X}")
        record[case] = {why: " ".join(by_cause[why]) for why in by_cause}
        print(case, {why: len(names) for why, names in by_cause.items()})
    text = json.dumps(record, indent=1, sort_keys=True)
    LIST.write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
