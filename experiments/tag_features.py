"""What a tagger without a BERT reaches on CoNLL-2003, for chapter 43.

    BERTBOOK_DATA=FOLDER python -m experiments.tag_features

Trains `tag_by_features` on 100 sentences and more, with capitals and without,
and writes data/runs/tag_features.json: entity F1 on dev, in percent, seed by
seed, and that of the rule of capitals where the places of names count alone.
Each seed draws the sentences that it drew for the models of docs/results.md.
Strength and reach are those that cross-validation chose on the 300 sentences
of the chapter. About fifteen minutes on one core.
"""

import json
from pathlib import Path

import bertbook as bb
from bertbook.book.tagging import tag_by_features
from bertbook.tasks import metrics
from experiments.results import draw_rows

KEPT = Path(__file__).parent.parent / "data" / "runs" / "tag_features.json"
CHOSEN = {"strengths": (10,), "reaches": (2,)}
SEEDS = {100: 10, 500: 10, 2_000: 3, 14_041: 1}  # sentences: seeds


def main():
    """Trains the taggers, and writes the file."""
    train, dev = (
        bb.load_dataset("conll2003", part) for part in ("train", "dev")
    )
    rule = [follow_capitals(row) for row in dev["tokens"]]
    kept = {"rule of capitals, places": f1(places(dev["tags"]), places(rule))}
    for count, seeds in SEEDS.items():
        for capitals in (False, True):
            scores = []
            for seed in range(seeds):
                rows = draw_rows(train, count, seed)
                found, _ = tag_by_features(
                    rows["tokens"],
                    rows["tags"],
                    dev["tokens"],
                    lambda guesses, tags: f1(tags, guesses),
                    capitals,
                    **CHOSEN,
                )
                scores.append(f1(dev["tags"], found))
            seen = "with" if capitals else "without"
            kept[f"{count} sentences, {seen} capitals"] = scores
            print(count, seen, scores, flush=True)
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
