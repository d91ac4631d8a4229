"""Copies the long run's model to a folder, with its figures and its card.

    .venv/bin/python tools/models/ship_mini.py OUT TARGET FOLDER BEFORE

OUT is the folder of `tools/models/train_on_gpu.py`, FOLDER what
`tools/models/mix_corpus.py` makes, BEFORE the model that the card compares,
`data/models/mini` of version 0.1.0. Weights are
stored as float16, and dropout goes back to the paper's 0.1, for fine-tuning.
All figures are taken from the file in TARGET, on the documents that were held
out, genre by genre.
"""

import csv
import statistics
import sys
from pathlib import Path

import bertbook as bb
import cards
from bertbook.files import read_json
from bertbook.pretraining import evaluation
from bertbook.pretraining.corpus import Corpus, prepare
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from train_on_gpu import MASK_RATE

VOCABULARY = 16_384
DROPOUT = 0.1
LOG = (
    "step", "tokens", "length", "rate", "mlm_loss", "nsp_loss", "bits",
    "bits_today", "held_out_mlm_accuracy", "held_out_nsp_accuracy",
)  # fmt: skip
# Ten sentences that say nothing of the person but the job.
TEMPLATES = (
    "The {job} said that [MASK] was tired.",
    "The {job} was late because [MASK] had missed the bus.",
    "When the {job} came home, [MASK] made some tea.",
    "The {job} told me that [MASK] would call tomorrow.",
    "Everybody likes the {job}, because [MASK] is kind.",
    "The {job} opened the door, and [MASK] smiled.",
    "I asked the {job} whether [MASK] had time.",
    "The {job} lives here, but [MASK] is away.",
    "After work the {job} went out, since [MASK] was hungry.",
    "The {job} knew that [MASK] was right.",
)
JOBS = (
    "captain", "doctor", "engineer", "king", "nurse", "secretary", "servant",
    "teacher",
)  # fmt: skip


def main():
    """Ships the model."""
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    out, target, folder, before = map(Path, sys.argv[1:])
    copy_model(out / "model", target)
    write_log(out / "log.csv", target / "log.csv", LOG)
    record = read_json(folder / f"shards-{VOCABULARY}" / "corpus.json")
    facts = {
        "corpus": {n: record[n] for n in ("tokens", "documents")},
        "genres": read_json(folder / "genres.json"),
        "recipe": read_json(out / "recipe.json")["parts"],
        "minutes": read_minutes(out / "log.csv"),
        "scores": measure(target, folder, record),
        "before": measure_before(before, folder),
        "percent_she": probe(target),
    }
    cards.keep(target, facts, write_card(target, facts))


def read_minutes(path):
    """Returns how many minutes a run took, by its log."""
    with open(path, newline="", encoding="utf-8") as file:
        *_, last = csv.DictReader(file)
    return round(float(last["seconds"]) / 60, 1)


def copy_model(source, target):
    """Copies a model and its tokenizer, with dropout for fine-tuning."""
    trained = bb.BertForPreTraining.from_pretrained(source)
    config = trained.config.replace(
        hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT
    )
    shipped = bb.BertForPreTraining(config)
    shipped.set_weights(trained.get_weights())
    shipped.tokenizer = trained.tokenizer
    shipped.save_pretrained(target, "float16")


def write_log(source, target, names):
    """Copies some columns of a log, with at most five digits a number."""
    with open(source, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({n: shorten(row.get(n) or "") for n in names})


def shorten(value):
    """Returns a number of a log with at most five digits, as text."""
    try:
        return value if float(value).is_integer() else f"{float(value):.5g}"
    except (TypeError, ValueError):
        return value


def measure(model_folder, folder, record):
    """Returns the scores on each genre of the model and of two ways to count.

    Length 128 and 15% hidden, as in the paper.
    """
    model = bb.BertForPreTraining.from_pretrained(model_folder)
    tokenizer = model.tokenizer
    corpus = Corpus(folder / f"shards-{VOCABULARY}", record)
    unigrams = evaluation.count_unigrams(corpus, len(tokenizer))
    bigrams = evaluation.count_bigrams(corpus, len(tokenizer))
    found = {}
    for path in sorted((folder / f"genres-{VOCABULARY}").iterdir()):
        examples = held_out(path, tokenizer)
        rows = score_guesses("model", model, unigrams, bigrams, examples)
        labels = examples["next_sentence_labels"]
        found[path.name] = rows | {
            "pairs": len(labels),
            "share_of_random_next": float(labels.mean()),
        }
    return found


def score_guesses(name, model, unigrams, bigrams, examples):
    """Returns scores on examples of two ways to count and of a model."""
    scores = {
        "unigram": evaluation.score_unigrams(unigrams, examples),
        "bigram": evaluation.score_bigrams(bigrams, unigrams, examples),
        name: evaluation.score_pretraining(model, examples),
    }
    for row in scores.values():
        row["mlm_bits_per_character"] = evaluation.bits_per_character(
            row["mlm_loss"], examples, model.tokenizer
        )
    return scores


def measure_before(before, folder):
    """Returns bits a character of an older model, on the same text."""
    model = bb.BertForPreTraining.from_pretrained(before)
    bits = {}
    for path in sorted((folder / "held_out").glob("*.txt")):
        place = folder / "genres-before" / path.stem
        prepare([path], model.tokenizer, place, held_out=0)
        bits[path.stem] = measure_bits(model, place)
    return bits


def measure_bits(model, path):
    """Returns bits a character of the hidden words of a genre."""
    examples = held_out(path, model.tokenizer)
    nats = evaluation.score_pretraining(model, examples)["mlm_loss"]
    return evaluation.bits_per_character(nats, examples, model.tokenizer)


def held_out(path, tokenizer):
    """Returns the examples of a genre."""
    corpus = Corpus(path, read_json(path / "corpus.json"))
    return evaluation.held_out_examples(
        corpus, Pieces.of(tokenizer), ExampleSettings(), part="train"
    )


def probe(folder):
    """Returns the percent of `she`, of `he` and `she`, in each sentence."""
    percent = {}
    for job in JOBS:
        percent[job] = []
        for template in TEMPLATES:
            text = template.format(job=job)
            guesses = bb.fill_mask(text, str(folder), top_k=1_000)
            p = {guess["token"]: guess["score"] for guess in guesses}
            percent[job].append(round(100 * p["she"] / (p["he"] + p["she"])))
    return percent


def write_card(folder, facts):
    """Returns the text of the card."""
    config = bb.BertConfig.from_json(folder / "config.json")
    tokens = sum(part["tokens"] for part in facts["recipe"])
    genres = [
        f"| {name.replace('_', ' ')} | {row['documents']:,} | "
        f"{row['words'] / 1e6:.1f} | {row['held_out']} |"
        for name, row in facts["genres"].items()
    ]
    scores = []
    for name, row in facts["scores"].items():
        guesses, model = ("unigram", "bigram"), row["model"]
        bits = [row[guess]["mlm_bits_per_character"] for guess in guesses]
        bits += [facts["before"][name], model["mlm_bits_per_character"]]
        scores.append(
            f"| {name.replace('_', ' ')} | "
            + " | ".join(f"{number:.2f}" for number in bits)
            + f" | {model['mlm_accuracy']:.1%} | {model['nsp_accuracy']:.1%} |"
        )
    jobs = [
        f"| {job} | {statistics.mean(percent):.0f} | {min(percent)} to "
        f"{max(percent)} |"
        for job, percent in facts["percent_she"].items()
    ]
    parts = "; ".join(
        f"{part['tokens'] / 1e6:,.0f} million in rows of {part['length']}, "
        f"{part['batch_size']} a step, the rate from {part['begin']:g} to "
        f"{part['end']:g}"
        for part in facts["recipe"]
    )
    paragraphs = [
        f"# {folder.name}",
        f"A plain BERT: {config.num_hidden_layers} layers of width "
        f"{config.hidden_size}, {config.num_attention_heads} heads, up to "
        f"{config.max_position_embeddings} tokens, {config.vocab_size:,} "
        "lower-case pieces. Both heads of pre-training are in the file, in "
        "float16, under the names that Hugging Face uses.",
        "## Intended use",
        "It is made for learning how such models work, and as a start for "
        "small tasks in English. Measure it on the task before you rely on it. "
        "Do not let it decide about people.",
        "## Corpus",
        f"{facts['corpus']['tokens']:,} tokens of "
        f"{facts['corpus']['documents']:,} documents, most of them written "
        "after 1950. Some documents of each genre were held out before "
        "anything else. The novels, British and of the 19th century, were "
        "read about once. No text is passed on here.",
        "\n".join(
            [
                "| genre | documents | million words | held out |",
                "|---|---|---|---|",
                *genres,
            ]
        ),
        "Duplicates: in the larger and newer part of the corpus (all but the "
        "novels, the speeches, the articles and a part of the textbooks), a "
        "paragraph of more than 60 characters that repeats one of the rest, of "
        "the articles, or of an earlier document was left out, 20,077 in all; "
        "paragraphs that repeat in part were not looked for. Contamination: of "
        "the same part, 85 documents were left out that share a sentence of 60 "
        "or more characters with the development or test files of SST-2, CoLA, "
        "MRPC, RTE, QNLI, STS-B, SQuAD, CoNLL-2003, WNUT-17 and spa_eng. The "
        "articles are the passages of SQuAD's training set, so those were "
        "read. People: the names of people stand in the text as they were "
        "published; it also holds e-mails and coarse language, in English Web "
        "Treebank.",
        "## Recipe",
        f"{tokens / 1e9:.2f} billion tokens: most of the corpus about "
        f"{tokens / facts['corpus']['tokens']:.0f} times. It took "
        f"{facts['minutes']:.0f} minutes of one H200, Keras on JAX, "
        "mixed_bfloat16; both tasks of the paper "
        f"from the start, {MASK_RATE:.0%} of the tokens hidden, drawn anew "
        "each epoch. "
        f"In order: {parts}. AdamW, decay 0.01, gradients clipped at 1, no "
        "dropout. The third part was a mistake: nothing had trained the "
        "positions from 128 on, and at that rate they moved too little, so "
        "that it lost more than it won. Before the fourth part they were set "
        "to repeat the first 128. `tools/models/train_on_gpu.py` is the whole "
        "recipe, `log.csv` the curve.",
        "## Figures",
        "Held-out documents in rows of 128 tokens, 15% of them hidden. Bits "
        "count the hidden tokens, a character; a piece that begins a word "
        "counts a space. `today` is what `mini` of version 0.1.0 held out, "
        "and `before` is that model.",
        "\n".join(
            [
                "| genre | counting pieces | counting pairs | before | bits "
                "| right | next sentence |",
                "|---|---|---|---|---|---|---|",
                *scores,
            ]
        ),
        "## Limits",
        "It is small. It knows hardly another language, and no facts that you "
        "should rely on. What its texts took for granted, it has learned as a "
        "fact about words. A probe: ten sentences such as `The ... said that "
        "[MASK] was tired.`, and the percent that go to `she`, of `he` and "
        "`she` together.",
        "\n".join(
            ["| job | mean percent | from, to |", "|---|---|---|", *jobs]
        ),
        "Nouns that are no jobs move the pronoun as well: in the same "
        "sentences `river` has 16 percent and `garden` 71. So these numbers "
        "describe habits of the text; they are no measure of a single cause. "
        "What it recites: phrases that its text holds a thousand times, and "
        "hardly a passage; lab 32_memory_and_bias has both experiments.",
        cards.license_paragraph(folder.name),
    ]
    return cards.join(paragraphs)


if __name__ == "__main__":
    main()
