"""What a tagger without a BERT reaches on CoNLL-2003, for chapter 43.

    BERTBOOK_DATA=FOLDER python -m experiments.tag_features

Trains `tag_by_features` on 2,000 sentences and on all, with capitals and
without, and writes data/runs/tag_features.json: entity F1 on dev, in percent,
also where the places of names count alone, and that of the rule of capitals.
Its strength and its reach are those that cross-validation chose on the 300
sentences of the chapter. About ten minutes on one core.
"""

import json
from pathlib import Path

import bertbook as bb
from bertbook.book.tagging import tag_by_features
from bertbook.tasks import metrics
from experiments.results import draw_rows

KEPT = Path(__file__).parent.parent / "data" / "runs" / "tag_features.json"
CHOSEN = {"strengths": (10,), "reaches": (1,)}


def main():
    """Trains the taggers, and writes the file."""
    train, dev = (
        bb.load_dataset("conll2003", part) for part in ("train", "dev")
    )
    rule = [follow_capitals(row) for row in dev["tokens"]]
    kept = {"rule of capitals, places": f1(places(dev["tags"]), places(rule))}
    for count in (2_000, len(train["tokens"])):
        rows = draw_rows(train, count, seed=0)
        for capitals in (False, True):
            found, _ = tag_by_features(
                rows["tokens"],
                rows["tags"],
                dev["tokens"],
                lambda guesses, tags: f1(tags, guesses),
                capitals,
                **CHOSEN,
            )
            seen = "with" if capitals else "without"
            name = f"{count} sentences, {seen} capitals"
            kept[name] = f1(dev["tags"], found)
            kept[f"{name}, places"] = f1(places(dev["tags"]), places(found))
            print(name, kept[name], flush=True)
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    KEPT.write_text(text, encoding="utf-8")


def f1(tags, guesses):
    """Returns entity F1 in percent."""
    return round(100 * metrics.entity_f1(tags, guesses)["f1"], 1)


def places(rows):
    """Returns tags with one type, X, for all names."""
    return [[t if t == "O" else t[:2] + "X" for t in row] for row in rows]


def follow_capitals(words):
    """Takes each run of capitals for a name, the first word apart."""
    tags = ["O"]
    for word in words[1:]:
        inside = "B-X" if tags[-1] == "O" else "I-X"
        tags.append(inside if word[0].isupper() else "O")
    return tags


if __name__ == "__main__":
    main()
