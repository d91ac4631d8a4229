"""Trains a model of `data/models` on a task: mini-qnli or mini-squad.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/train_tasks.py NAME OUT
    ... mini-qnli OUT START

FOLDER/squad and FOLDER/qnli hold the data. Each takes about half an hour on two
cores that compute in bfloat16; the same command resumes where it stopped, and
at its end copies the model to its place, with its figures and its card.
OUT/1, OUT/2, ... are the parts of a run. mini-qnli begins from the first part
of mini-squad, which START names.
"""

import dataclasses
import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bertbook as bb
import cards
from bertbook.batches.ragged import compute
from bertbook.cli.finetuning import head_for
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.finetuning.run import keep_in_config
from bertbook.runtime import keras
from bertbook.tasks.base import Settings
from bertbook.tasks.word_tasks import Questions
from bertbook.text.sentences import split_sentences
from misleading import mislead

UNANSWERABLE = 43_000  # questions put to another passage, beside 87,599
MISLEADING = 20_000  # questions with a word changed, in the second part
SHORTENED = 0.5  # share of the passages that are cut, to save time
SHORTEST, LONGEST = 60, 600  # characters that are left of those
NEIGHBORS = 20  # passages before and behind from which that one is chosen
COLUMNS = ("question", "context", "answers")
LOG_STEPS = 100
# For whoever trains the model further, on fewer rows.
DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
# Words that say nothing of what a question asks for.
COMMON = """
a an and are as at be by did do does for from had has have how in is it its of
on or that the their they this to was were what when where which who whom whose
why with
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """One epoch over some rows."""

    make_rows: Callable[[dict], dict]  # from the training set of SQuAD 1.1
    learning_rate: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """One model: its data, its recipe, and what its card says."""

    parts: tuple[Part, ...]
    start: str
    start_stage: str = ""  # what the card says behind the name of the start
    batch_size: int = 32
    max_length: int
    task: str
    data: str
    limits: str


def make_questions(squad: dict) -> dict:
    """Returns the rows of mini-squad: some unanswerable, some shortened."""
    return shorten(add_unanswerable(squad, UNANSWERABLE))


def add_unanswerable(squad: dict, count: int) -> dict:
    """Adds questions put to a passage that does not answer them.

    The passage is the one of the `NEIGHBORS` before and behind it, most of
    them from the same article, that shares most words with the question and
    does not hold the answer.
    """
    passages = list(dict.fromkeys(squad["context"]))
    place_of = {passage: i for i, passage in enumerate(passages)}
    questions, contexts = [], []
    for row in draw(len(squad["question"]), count):
        here = place_of[squad["context"][row]]
        near = [
            passages[i]
            for i in range(here - NEIGHBORS, here + NEIGHBORS + 1)
            if 0 <= i < len(passages) and i != here
        ]
        answer = squad["answers"][row][0]["text"].lower()
        near = [passage for passage in near if answer not in passage.lower()]
        if near:
            questions.append(squad["question"][row])
            contexts.append(most_alike(squad["question"][row], near))
    return {
        "question": [*squad["question"], *questions],
        "context": [*squad["context"], *contexts],
        "answers": [*squad["answers"], *([] for _ in questions)],
    }


def make_misleading(squad: dict) -> dict:
    """Returns the rows of the second part: questions that seem answerable.

    Each stands beside itself with a word changed, so that its passage has no
    answer to it; and a fourth of as many are put to a passage nearby.
    """
    random = np.random.default_rng(0)
    rows: dict[str, list] = {name: [] for name in COLUMNS}
    kept = 0
    for row in random.permutation(len(squad["question"])):
        question, context, answers = (squad[name][row] for name in COLUMNS)
        changed = mislead(question, context, answers[0]["text"], random)
        if changed is not None and kept < MISLEADING:
            kept += 1
            rows["question"] += [changed, question]
            rows["context"] += [context, context]
            rows["answers"] += [[], answers]
    nearby = add_unanswerable(squad, kept // 4)
    for name, column in rows.items():
        column += nearby[name][len(squad[name]) :]
    return shorten(rows)


def shorten(data: dict) -> dict:
    """Cuts some passages to sentences around the answer, or around any one."""
    random = np.random.default_rng(0)
    contexts, answers = list(data["context"]), list(data["answers"])
    for row, passage in enumerate(contexts):
        if random.random() >= SHORTENED:
            continue
        room = random.integers(SHORTEST, LONGEST)
        if answers[row]:
            answer = answers[row][0]
            begin = answer["answer_start"]
            end = begin + len(answer["text"])
        else:
            begin = random.choice(sentences_of(passage)[1])
            end = begin + 1
        start, stop = cut(passage, begin, end, room, random)
        contexts[row] = passage[start:stop]
        if answers[row]:
            answers[row] = [answer | {"answer_start": begin - start}]
    return data | {"context": contexts, "answers": answers}


def cut(passage, begin, end, room, random):
    """Returns from where to where sentences reach that hold a span.

    Sentences are added before or behind as long as there is room.
    """
    _, starts = sentences_of(passage)
    borders = [*starts, len(passage)]
    first = int(np.searchsorted(borders, begin, "right")) - 1
    last = int(np.searchsorted(borders, end))
    while True:
        wider = [(max(first - 1, 0), last), (first, min(last + 1, len(starts)))]
        wider = [
            (a, b)
            for a, b in wider
            if (a, b) != (first, last) and borders[b] - borders[a] <= room
        ]
        if not wider:
            return borders[first], borders[last]
        first, last = wider[random.integers(len(wider))]


def pair_sentences(squad: dict) -> dict:
    """Pairs each question with two sentences, in the way of QNLI.

    One holds the answer; the other, of the same passage, is the one that
    shares most words with the question (Wang et al., 2019).
    """
    rows: dict[str, list] = {"text": [], "text_pair": [], "label": []}
    columns = squad["question"], squad["context"], squad["answers"]
    for question, context, (answer, *_) in zip(*columns, strict=True):
        sentences, starts = sentences_of(context)
        begin = answer["answer_start"]
        first = np.searchsorted(starts, begin, "right") - 1
        last = np.searchsorted(starts, begin + len(answer["text"])) - 1
        others = [*sentences[:first], *sentences[last + 1 :]]
        pairs = [(sentences[first], "entailment")] if first == last else []
        if others:
            pairs.append((most_alike(question, others), "not_entailment"))
        for sentence, label in pairs:
            rows["text"].append(question)
            rows["text_pair"].append(sentence)
            rows["label"].append(label)
    return rows


@functools.cache
def sentences_of(passage):
    """Returns the sentences of a passage, and where they start."""
    sentences, starts = split_sentences(passage), []
    for sentence in sentences:
        starts.append(passage.index(sentence, starts[-1] + 1 if starts else 0))
    return sentences, starts


def most_alike(question, texts):
    """Returns the text that shares most words with a question."""
    words = content_words(question)
    return max(texts, key=lambda text: len(words & content_words(text)))


@functools.cache
def content_words(text):
    """Returns the words of a text that are not common."""
    return frozenset(re.findall(r"\w+", text.lower())) - set(COMMON.split())


def draw(rows, count):
    """Returns the numbers of some rows, in their order."""
    return np.sort(np.random.default_rng(0).permutation(rows)[:count])


PLANS = {
    "mini-qnli": Plan(
        parts=(Part(pair_sentences, 5e-4),),
        start="mini-squad",
        start_stage=" after the first of its two parts",
        max_length=128,
        task="does the second sentence answer the first, a question",
        data="{parts[0][rows]:,} pairs made from the questions of the training "
        "set of SQuAD 1.1 in the way of QNLI (Wang et al., 2019): a question "
        "with the sentence that holds the answer, and with the one of the same "
        "passage that shares most words with it",
        limits="Its questions are about encyclopedia articles, and each was "
        "written with the answer in view, so that words in common say much.",
    ),
    "mini-squad": Plan(
        parts=(Part(make_questions, 5e-4), Part(make_misleading, 2e-4)),
        start="mini",
        max_length=384,
        task="from where to where in a passage the answer to a question "
        "stands, or whether there is none",
        data="First all 87,599 questions of the training set of SQuAD 1.1 "
        "(Rajpurkar et al., 2016), and {parts[0][unanswerable]:,} of them a "
        "second time, put to a passage nearby that does not answer them. Then "
        f"{{parts[1][rows]:,}} rows: {MISLEADING:,} of the questions, the same "
        "with one word changed by rule (a name, a number or an opposite of the "
        "passage, or a *not*), so that they seem answerable, and some more put "
        "to a passage nearby. Half of the passages were cut to some sentences "
        "around the answer",
        limits="Most questions that it learned to leave unanswered were made "
        "by rule, not by people who wanted to deceive, as those of SQuAD 2.0 "
        "were. Names, numbers and dates it finds best; it does not reason. "
        "Answers of a dozen tokens or more are rarely right, and with the "
        "threshold in the file it refuses too much where questions are worded "
        "differently from their passage: 86% of 210 that have an answer "
        "(`shelf_questions`). Without `no_answer_threshold` in `config.json` "
        "it always answers. Lab 42_no_answer chooses both.",
    ),
}


def main():
    """Trains and copies a model."""
    if len(sys.argv) < 3 or sys.argv[1] not in PLANS:
        sys.exit(__doc__)
    name, out = sys.argv[1], Path(sys.argv[2])
    plan = PLANS[name]
    if len(sys.argv) != 3 + bool(plan.start_stage):
        sys.exit(__doc__)  # a start at some stage is a folder, not a name
    bb.setup()
    start = sys.argv[3] if plan.start_stage else plan.start
    squad = bb.load_dataset("squad", "train")
    facts: dict = {"parts": []}
    history: dict = {"step": [], "loss": []}
    for number, part in enumerate(plan.parts, 1):
        train = part.make_rows(squad)
        model, losses = train_part(plan, part, train, start, out / str(number))
        start = out / str(number)
        count = {"rows": len(next(iter(train.values())))}
        if "answers" in train:
            count["unanswerable"] = train["answers"].count([])
        facts["parts"].append(count)
        steps_before = max(history["step"], default=0)
        history["step"] += [steps_before + step for step in losses["step"]]
        history["loss"] += losses["loss"]
    target = cards.MODELS / name
    model.config = model.config.replace(**DROPOUT)
    model.save_pretrained(target, "float16")
    shipped = type(model).from_pretrained(target)
    facts |= MEASURES[name](shipped, plan.max_length)
    shipped.save_pretrained(target, "float16")  # with its threshold
    write_log(history, target / "log.csv")
    cards.keep(target, facts, write_card(name, facts))


def train_part(plan, part, train, start, out):
    """Trains one part; returns the model, and the losses by step."""
    keras.utils.set_random_seed(0)
    model = make_model(start, train)
    history = bb.finetune(
        model,
        train,
        epochs=1,
        learning_rate=part.learning_rate,
        batch_size=plan.batch_size,
        max_length=plan.max_length,
        out=out,
        options=FinetuningOptions(
            checkpoint_steps=200, evaluation_steps=LOG_STEPS
        ),
    )
    return model, history


def make_model(start, train):
    """Returns the model to train, without dropout.

    A model this small does not learn so many rows by heart in an epoch.
    """
    kind, head = head_for(train)
    source = kind.from_pretrained(start, **head)
    config = source.config.replace(**dict.fromkeys(DROPOUT, 0.0))
    model = kind(config, dtype="mixed_bfloat16", **head)
    model.set_weights(source.get_weights())
    model.tokenizer = source.tokenizer
    return model


def measure_pairs(model, max_length):
    """Returns the figures on the development set of QNLI."""
    dev = bb.load_dataset("qnli", "dev")
    scores = bb.evaluate(model, dev, max_length=max_length)
    return {"dev": {"rows": len(dev["label"])} | scores}


def measure_answers(model, max_length):
    """Returns the figures on SQuAD 1.1 and 2.0, and sets the threshold.

    Each half of 2.0 is measured with the threshold chosen on the other half.
    The model keeps one chosen on 1.1, where half of the questions are put to a
    passage nearby.
    """
    settings = Settings(max_length=max_length)
    dev = bb.load_dataset("squad", "dev")
    keep_in_config(model, no_answer_threshold=None)
    scores = bb.evaluate(model, dev, max_length=max_length)
    facts = {"dev": {"rows": len(dev["question"])} | scores}
    second = bb.load_dataset("squad_v2", "dev")
    tasks = [Questions(model, half, settings) for half in halve(second)]
    outputs = [compute(model, task.rows) for task in tasks]
    best = [t.best_threshold(o) for t, o in zip(tasks, outputs, strict=True)]
    scores = []
    for task, output, threshold in zip(tasks, outputs, best[::-1], strict=True):
        keep_in_config(model, no_answer_threshold=threshold)
        scores.append(task.score(output))
    rows = [len(task.data["question"]) for task in tasks]
    facts["dev_v2"] = {"rows": sum(rows), "thresholds": best} | {
        name: float(np.average([score[name] for score in scores], weights=rows))
        for name in ("exact_match", "f1")
    }
    facts["silence"] = Questions(model, second, settings).blank_score()["f1"]
    mixed = add_unanswerable(dev, len(dev["question"]))
    task = Questions(model, mixed, settings)
    output = compute(model, task.rows)
    threshold = task.best_threshold(output)
    keep_in_config(model, no_answer_threshold=threshold)
    facts["mixed"] = {
        "rows": len(mixed["question"]),
        "threshold": threshold,
        **task.score(output),
    }
    return facts


def halve(data):
    """Returns the first and the second half of a set, cut between passages."""
    passages = list(dict.fromkeys(data["context"]))
    early = set(passages[: len(passages) // 2])
    return [
        {
            name: [
                value
                for value, passage in zip(column, data["context"], strict=True)
                if (passage in early) == is_early
            ]
            for name, column in data.items()
        }
        for is_early in (True, False)
    ]


MEASURES = {"mini-qnli": measure_pairs, "mini-squad": measure_answers}


def write_log(history, path):
    """Writes the training loss by step."""
    rows = zip(history["step"], history["loss"], strict=True)
    lines = [f"{step},{loss:.4f}" for step, loss in rows]
    path.write_text("\n".join(["step,loss", *lines]) + "\n", encoding="utf-8")


def write_card(name, facts):
    """Returns the text of the card."""
    plan = PLANS[name]
    rates = " and ".join(f"{part.learning_rate:g}" for part in plan.parts)
    epochs = "One epoch over each part, in turn,"
    if len(plan.parts) == 1:
        epochs = "One epoch"
    paragraphs = [
        f"# {name}",
        f"`{plan.start}`{plan.start_stage}, fine-tuned on one question: "
        f"{plan.task}. Plain fine-tuning: every weight was trained, and no "
        "head was set by hand. It is a start for small sets of such rows, and "
        "small enough to look into.",
        "## Data",
        f"{plan.data.format(**facts)}. Crowd workers wrote the questions about "
        "Wikipedia articles (CC BY-SA 4.0). No text is passed on here.",
        "## Recipe",
        f"{epochs} of {plan.batch_size} rows a step, up to {plan.max_length} "
        f"tokens, AdamW with a peak of {rates} after a warm-up over a tenth of "
        "the steps, then linearly down to 0; no dropout; "
        "mixed_bfloat16, on two processor cores. The weights of the last step. "
        "`tools/models/train_tasks.py` is the whole recipe, `log.csv` the "
        "loss.",
        "## Figures",
        *FIGURES[name](facts),
        "## Limits",
        f"{plan.limits} The limits of `{plan.start}` are its limits, too.",
        cards.license_paragraph(name),
    ]
    return cards.join(paragraphs)


def figures_of_pairs(facts):
    """Returns what the card of mini-qnli says of its figures."""
    dev = facts["dev"]
    return [
        f"{dev['rows']:,} of the 5,463 rows of the development set of QNLI, "
        "from the file that ships: "
        f"accuracy {dev['accuracy']:.1%}. Papers state it for all rows.",
    ]


def figures_of_answers(facts):
    """Returns what the card of mini-squad says of its figures."""
    dev, second, mixed = facts["dev"], facts["dev_v2"], facts["mixed"]
    return [
        f"SQuAD 1.1, {dev['rows']:,} of the 10,570 questions of the "
        "development set (38 of its 48 articles), from the file that ships, "
        f"always answering: exact match {dev['exact_match']:.1%}, F1 "
        f"{dev['f1']:.1%}.",
        f"SQuAD 2.0, {second['rows']:,} of 11,873 questions (29 of 35 "
        f"articles): exact match {second['exact_match']:.1%}, F1 "
        f"{second['f1']:.1%}, where never answering gives "
        f"{facts['silence']:.1%}. Each half was measured with the threshold "
        "chosen on the other half: "
        f"{second['thresholds'][1]:.2f} and {second['thresholds'][0]:.2f}.",
        "The questions of SQuAD 1.1, once with their passage and once with one "
        f"nearby: F1 {mixed['f1']:.1%}; {mixed['unanswered_f1']:.1%} of the "
        "second kind are left unanswered, and of the first the F1 is "
        f"{mixed['answered_f1']:.1%}. The threshold in the file was chosen on "
        f"these: {mixed['threshold']:.2f}.",
        "Papers state the first two for all questions.",
    ]


FIGURES = {"mini-qnli": figures_of_pairs, "mini-squad": figures_of_answers}

if __name__ == "__main__":
    main()
