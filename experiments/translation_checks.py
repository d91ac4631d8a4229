"""Three checks of `en-es`, for chapter 61.

    BERTBOOK_DATA=FOLDER python -m experiments.translation_checks

FOLDER/spa_eng holds the pairs.

* How many targets of the test set are targets of training, too, but for
  capitals and punctuation? What is BLEU on these, and without them?
* What does a beam of 4 gain over greedy search, and what is the standard error
  of the difference, and of one BLEU of 300 pairs? English sentences are drawn
  again with replacement, the same ones for both.
* What does a model of the size of `en-es` learn from the 520 pairs of the book,
  in up to 600 steps, with a dropout of 0.1 and of 0.3?
"""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
from sacrebleu.metrics import BLEU

import bertbook as bb
from bertbook.batches.feeding import feed_fit
from bertbook.runtime import keras
from bertbook.training.losses import SmoothedLoss
from bertbook.training.optimizers import InverseSquareRootDecay
from bertbook.translation import bitext
from bertbook.translation.train import SMALL
from experiments.results import describe_machine

DRAWS = 500
CHUNK = 100  # steps between two gradings
MOST_STEPS = {0.1: 400, 0.3: 600}  # by dropout


def main():
    """Makes the checks and keeps what they find."""
    bb.setup()
    result = check_test_set() | {"few": check_few_pairs()}
    result["machine"] = describe_machine()
    path = Path(__file__).parent / "results" / "translation_checks.json"
    path.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result, indent=1))


def check_test_set():
    """Returns what is said of the test set of spa_eng."""
    model = bb.Seq2SeqTransformer.from_pretrained("en-es")
    train, test = (bb.load_dataset("spa_eng", x) for x in ("train", "test"))
    known = set(map(plain, train["target"]))
    seen = np.array([plain(text) in known for text in test["target"]])
    sources = sorted(set(test["source"]))
    tables = {}
    for search in ("greedy", "beams"):
        lines = bb.translate(model, sources, search=search)
        lines = dict(zip(sources, lines, strict=True))
        tables[search] = counts_of(
            [lines[text] for text in test["source"]], test["target"]
        )
    beams = tables["beams"]
    rows = {text: [] for text in sources}
    for row, text in enumerate(test["source"]):
        rows[text].append(row)
    sums = {
        search: np.array([table[group].sum(axis=0) for group in rows.values()])
        for search, table in tables.items()
    }
    rng = np.random.default_rng(0)
    gains, few = [], []
    for _ in range(DRAWS):
        drawn = rng.integers(0, len(rows), len(rows))
        two = [bleu_of(sums[x][drawn].sum(axis=0)) for x in ("beams", "greedy")]
        gains.append(two[0] - two[1])
        drawn = rng.integers(0, len(seen), 300)
        few.append(bleu_of(tables["greedy"][drawn].sum(axis=0)))
    return {
        "pairs": len(seen),
        "seen_targets": round(float(seen.mean()), 4),
        "bleu": rounded(beams),
        "bleu_seen": rounded(beams[seen]),
        "bleu_unseen": rounded(beams[~seen]),
        "beam_gain": round(
            float(rounded(beams) - rounded(tables["greedy"])), 2
        ),
        "beam_gain_error": round(float(np.std(gains)), 2),
        "error_of_300_pairs": round(float(np.std(few)), 2),
    }


def check_few_pairs():
    """Returns BLEU on the 100 pairs, by dropout, after every chunk of steps."""
    train, dev = (bb.load_dataset("translation", x) for x in ("train", "dev"))
    english = bb.Tokenizer.train(train["source"], 700, lowercase=False)
    spanish = bb.Tokenizer.train(train["target"], 900, lowercase=False)
    keras.config.set_dtype_policy("mixed_bfloat16")
    found = {}
    for dropout, most in MOST_STEPS.items():
        keras.utils.set_random_seed(0)
        config = dataclasses.replace(
            SMALL,
            vocab_size=len(english),
            target_vocab_size=len(spanish),
            hidden_dropout_prob=dropout,
        )
        columns = train["source"], train["target"]
        pairs = bitext.encode_pairs(*columns, english, spanish, config)
        model = bb.Seq2SeqTransformer(config)
        model.tokenizer, model.target_tokenizer = english, spanish
        rate = InverseSquareRootDecay(1e-3, warmup_steps=60)
        model.compile(keras.optimizers.Adam(rate), SmoothedLoss(0.1))
        steps = feed_fit(bitext.steps(pairs, tokens=1_024, limit=48, seed=0))
        how = {"steps_per_epoch": CHUNK, "verbose": 0, "shuffle": False}
        found[str(dropout)] = grades = []
        for _ in range(most // CHUNK):
            model.fit(steps, **how)
            lines = bb.translate(model, dev["source"], 40, "greedy")
            grades.append(rounded(counts_of(lines, dev["target"])))
    keras.config.set_dtype_policy("float32")
    return found


def plain(text):
    """Returns a text without capitals and punctuation."""
    return re.sub(r"\W+", " ", text.lower()).strip()


def counts_of(lines, references):
    """Returns what sacrebleu counts, a row for each sentence."""
    metric = BLEU()
    return np.array(metric._extract_corpus_statistics(lines, [references]))


def bleu_of(counts):
    """Returns BLEU from the sum of the counts."""
    return BLEU()._compute_score_from_stats(list(counts)).score


def rounded(table):
    """Returns BLEU of the sentences of a table, to two decimals."""
    return round(float(bleu_of(table.sum(axis=0))), 2)


if __name__ == "__main__":
    main()
