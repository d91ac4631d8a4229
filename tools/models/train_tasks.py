"""Trains a model of `data/models` on a task: mini-qnli or mini-squad.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/train_tasks.py NAME OUT

FOLDER/qnli and FOLDER/squad hold the data. Ten minutes and forty on one core;
the same command goes on where it stopped, and at its end copies the model to
its place, with its figures and its card.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

import bertbook as bb
import cards
from bertbook.cli.finetuning import head_for
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.pretraining.attention_init import mark_finds, teach_to_find
from bertbook.runtime import keras
from bertbook.text.sentences import split_sentences

PAIRED, QUESTIONED = ("text", "text_pair"), ("question", "context")
LESSON = 4_000  # pairs on which the first head is taught


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """One model: its data, its recipe, and what its card says."""

    start: str
    dataset: str
    rows: int
    learning_rate: float = 5e-4
    batch_size: int = 32
    max_length: int = 128
    shortest: int | None = None  # passages are cut to a length from here on
    longest: int | None = None  # to here, in characters
    task: str
    data: str
    published_dev: str
    limits: str


PLANS = {
    "mini-qnli": Plan(
        start="mini",
        dataset="qnli",
        rows=24_000,
        task="does the second sentence answer the first, a question",
        data="{:,} pairs made from questions of the training set of SQuAD "
        "1.1 in the way of QNLI (Wang et al., 2019): half with the sentence "
        "that holds the answer, half with the one beside it that shares most "
        "words with the question",
        published_dev="the published one has 5,463; figures in papers are for "
        "all of them",
        limits="Its questions are about encyclopedia articles, and each was "
        "written with the answer in view, so that words in common say much.",
    ),
    "mini-squad": Plan(
        start="mini",
        dataset="squad",
        rows=80_000,
        learning_rate=1e-3,
        shortest=60,
        longest=400,
        task="from where to where in a passage the answer to a question stands",
        data="{:,} questions of the training set of SQuAD 1.1 (Rajpurkar et "
        "al., 2016)",
        published_dev="those on 38 of its 48 articles; the published one has "
        "10,570, and figures in papers are for all of them",
        limits="It reads 128 tokens at a time and answers every question, "
        "also those that the passage does not answer.",
    ),
}


def main():
    """Trains and copies a model."""
    bb.setup()
    name, out = sys.argv[1], Path(sys.argv[2])
    plan = PLANS[name]
    train = draw_rows(bb.load_dataset(plan.dataset, "train"), plan.rows)
    if plan.longest is not None:
        train = shorten(train, plan)
    dev = bb.load_dataset(plan.dataset, "dev")
    keras.utils.set_random_seed(0)
    model = make_model(plan, train)
    history = bb.finetune(
        model,
        train,
        epochs=1,
        learning_rate=plan.learning_rate,
        batch_size=plan.batch_size,
        max_length=plan.max_length,
        out=out,
        options=FinetuningOptions(
            frozen_layers=1, checkpoint_steps=100, evaluation_steps=100
        ),
    )
    target = cards.MODELS / name
    model.save_pretrained(target, "float16")
    write_log(history, target / "log.csv")
    shipped = type(model).from_pretrained(target)
    facts = {
        "train_rows": plan.rows,
        "dev_rows": len(next(iter(dev.values()))),
        "dev": bb.evaluate(shipped, dev, max_length=plan.max_length),
    }
    cards.keep(target, facts, write_card(name, facts))


def make_model(plan, train):
    """Returns the model to train, without dropout, its first head taught."""
    kind, head = head_for(train)
    source = kind.from_pretrained(plan.start, **head)
    config = source.config.replace(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    model = kind(config, **head)
    model.encoder.set_weights(source.encoder.get_weights())
    model.tokenizer = source.tokenizer
    names = PAIRED if PAIRED[0] in train else QUESTIONED
    texts = [train[name][:LESSON] for name in names]
    batch = model.tokenizer(
        *texts, max_length=plan.max_length, padding="max_length"
    )
    teach_to_find(model, batch["input_ids"], batch["token_type_ids"])
    mark_finds(model)
    return model


def draw_rows(data, count):
    """Draws rows of a data set without putting them back."""
    rows = len(next(iter(data.values())))
    chosen = np.sort(np.random.default_rng(0).permutation(rows)[:count])
    return {name: [column[i] for i in chosen] for name, column in data.items()}


def shorten(data, plan):
    """Cuts passages to some sentences around the answer, at random."""
    random = np.random.default_rng(0)
    passages, answers = [], []
    for passage, found in zip(data["context"], data["answers"], strict=True):
        room = random.integers(plan.shortest, plan.longest)
        start, stop = cut(passage, found[0], room, random)
        passages.append(passage[start:stop])
        place = found[0]["answer_start"] - start
        answers.append([found[0] | {"answer_start": place}])
    return data | {"context": passages, "answers": answers}


def cut(passage, answer, room, random):
    """Returns from where to where sentences reach that hold an answer.

    Sentences are added before or behind as long as there is room.
    """
    starts = []
    for sentence in split_sentences(passage):
        place = starts[-1] + 1 if starts else 0
        starts.append(passage.index(sentence, place))
    borders = [*starts, len(passage)]
    begin = answer["answer_start"]
    first = np.searchsorted(borders, begin, "right") - 1
    last = np.searchsorted(borders, begin + len(answer["text"]))
    while True:
        wider = [(max(first - 1, 0), last), (first, min(last + 1, len(starts)))]
        wider = [
            (a, b)
            for a, b in wider
            if (a, b) != (first, last) and borders[b] - borders[a] <= room
        ]
        if not wider:
            return int(borders[first]), int(borders[last])
        first, last = wider[random.integers(len(wider))]


def write_log(history, path):
    """Writes the training loss by step."""
    rows = zip(history["step"], history["loss"], strict=True)
    lines = [f"{step},{loss:.4f}" for step, loss in rows]
    path.write_text("\n".join(["step,loss", *lines]) + "\n", encoding="utf-8")


def write_card(name, facts):
    """Returns the text of the card."""
    plan = PLANS[name]
    figures = ", ".join(
        f"{key.replace('_', ' ')} {100 * value:.1f}"
        for key, value in facts["dev"].items()
    )
    paragraphs = [
        f"# {name}",
        f"`{plan.start}`, trained further on one question: {plan.task}. It is "
        "a start for small sets of such rows, and small enough to look into.",
        "## Data",
        f"{plan.data.format(facts['train_rows'])}. Crowd workers wrote the "
        "questions about Wikipedia articles (CC BY-SA 4.0). No text is passed "
        "on here.",
        "## Recipe",
        "Before the training one head of the first layer was taught on "
        f"{LESSON:,} of the pairs to look for its piece in the other text, "
        "and to mark where it finds it "
        "(`bertbook.pretraining.attention_init`); `mini` had none that "
        "compares texts.",
        *(
            []
            if plan.longest is None
            else [
                f"Passages cut to whole sentences of {plan.shortest} to "
                f"{plan.longest} characters around the answer."
            ]
        ),
        f"One epoch of {plan.batch_size} rows a step, up to "
        f"{plan.max_length} tokens, AdamW with a peak of "
        f"{plan.learning_rate:g} after a warm-up over a tenth of the steps, "
        "then in a line down to 0; no dropout; the embeddings and the first "
        "layer stay as they were. The weights of the last step. "
        "`tools/models/train_tasks.py` is the whole recipe, `log.csv` the "
        "loss.",
        "## Figures",
        f"On {facts['dev_rows']:,} rows of the development set "
        f"({plan.published_dev}), from the file that ships: {figures} "
        "(percent).",
        "## Limits",
        f"{plan.limits} The limits of `mini` are its limits, too.",
        cards.license_paragraph(name),
    ]
    return cards.join(paragraphs)


if __name__ == "__main__":
    main()
