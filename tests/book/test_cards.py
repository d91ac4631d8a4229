"""Cards and result pages say what the facts and logs beside them say."""

import csv
import importlib
import json

import pytest

import bertbook as bb
import book
import cards

# The tool that writes each card, and what it takes before the facts.
WRITERS = {
    "mini": ("ship_mini", [cards.MODELS / "mini"]),
    "mini-taught": ("ship_taught", [cards.MODELS / "mini-taught"]),
    "mini-qnli": ("train_tasks", ["mini-qnli"]),
    "mini-squad": ("train_tasks", ["mini-squad"]),
    "en-es": ("train_translation", []),
}


def read_log(name):
    path = cards.MODELS / name / "log.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_model_that_ships_is_here():
    folders = {path.name for path in cards.MODELS.iterdir() if path.is_dir()}
    assert folders == set(WRITERS)


@pytest.mark.parametrize("name", WRITERS)
def test_a_card_is_what_its_facts_give(name):
    module, first = WRITERS[name]
    tool = importlib.import_module(module)
    facts = cards.read_facts(cards.MODELS / name)
    card = (cards.MODELS / name / "README.md").read_text("utf-8")
    assert tool.write_card(*first, facts) == card


def test_every_license_is_that_of_the_rule():
    """ShareAlike text, or weights that learned from it, give CC BY-SA."""
    for name in WRITERS:
        card = (cards.MODELS / name / "README.md").read_text("utf-8")
        sources = cards.sources_of(name)
        is_alike = any("BY-SA" in cards.CREDITS[s][0] for s in sources)
        starts = set() if name == "en-es" else set(cards.SOURCES["mini"])
        assert starts <= set(sources)  # the others started from `mini`
        wanted = "CC BY-SA 4.0" if is_alike else "Apache 2.0"
        assert cards.license_of(name) == wanted
        last = " ".join(card.split("\n\n")[-1].split())
        assert last.startswith(f"License: {wanted},")
        assert card.count("License:") == 1
        for source in sources:
            assert source in last
            assert cards.CREDITS[source][1] in last


def test_the_pages_say_of_each_license_what_the_cards_say():
    page = (cards.MODELS.parent / "README.md").read_text("utf-8")
    assert cards.license_table() in page
    readme = (book.ROOT / "README.md").read_text("utf-8")
    (text,) = (p for p in readme.split("\n\n") if "[LICENSE](LICENSE)" in p)
    alike, _, free = " ".join(text.split()).partition("CC BY-SA 4.0")
    for name in WRITERS:
        part = alike if cards.license_of(name) == "CC BY-SA 4.0" else free
        assert f"`{name}`" in part
        assert f"`models/{name}/" in page
    for row in page.splitlines():
        if row.startswith("| `models/mini") and "vocab.txt" not in row:
            is_weights = "float16" in row
            assert ("CC BY-SA 4.0" in row) == is_weights


def test_the_license_of_the_project_names_both():
    project = book.project()["project"]
    names = {cards.license_of(name) for name in WRITERS}
    spelled = {name.replace(" ", "-") for name in names}
    assert set(project["license"].split(" AND ")) == spelled


@pytest.mark.parametrize("name", ["mini", "mini-taught"])
def test_the_facts_of_a_run_are_those_of_its_log(name):
    facts, log = cards.read_facts(cards.MODELS / name), read_log(name)
    parts = [
        importlib.import_module("train_on_gpu").Part(**part)
        for part in facts.get("recipe") or [facts["part"]]
    ]
    steps = [part.rates().size for part in parts]
    read = [n * p.step_tokens for n, p in zip(steps, parts, strict=True)]
    tokens = [int(row["tokens"]) for row in log]
    assert tokens == sorted(tokens)
    assert tokens[-1] == sum(read) == facts.get("tokens", sum(read))
    assert int(log[-1]["step"]) == sum(steps)
    for part, count in zip(parts, read, strict=True):  # what a card says
        assert abs(count / part.tokens - 1) < 0.05


@pytest.mark.slow  # ten seconds and more
def test_the_probe_of_mini_gives_the_numbers_of_its_card():
    tool = importlib.import_module("ship_mini")
    facts = cards.read_facts(cards.MODELS / "mini")
    assert tool.probe(cards.MODELS / "mini") == facts["percent_she"]


def test_the_facts_of_the_translator_are_those_of_its_log():
    facts, last = (
        cards.read_facts(cards.MODELS / "en-es"),
        read_log("en-es")[-1],
    )
    assert int(last["step"]) == facts["steps"]
    assert float(last["epoch"]) == facts["epochs"]
    assert round(float(last["seconds"]) / 60, 1) == facts["minutes"]


@pytest.mark.parametrize("name", ["mini-qnli", "mini-squad"])
def test_a_log_ends_less_than_a_line_before_the_last_step(name):
    facts, log = cards.read_facts(cards.MODELS / name), read_log(name)
    plan = importlib.import_module("train_tasks").PLANS[name]
    rows = [part["rows"] for part in facts["parts"]]
    steps = sum(-(-count // plan.batch_size) for count in rows)
    last = int(log[-1]["step"])
    distance = int(log[1]["step"]) - int(log[0]["step"])
    if name == "mini-squad":  # a long passage is read in several windows
        assert steps <= last < 1.02 * steps
    else:
        assert 0 <= steps - last < distance


def test_the_page_of_results_is_what_the_runs_give():
    results = importlib.import_module("experiments.results")
    plans = [*results.RUNS, results.peer_of(results.MRPC)]
    files = len(list(results.KEPT.glob("*.json")))
    assert files == sum(len(results.kept(plan)) for plan in plans) > 100
    assert results.write_page() == results.PAGE.read_text("utf-8")


def test_a_score_on_dev_has_the_error_of_its_formula():
    results = importlib.import_module("experiments.results")
    for dataset, size, score, error in (
        ("sst2", 100, 0.5, "5.0"),
        ("squad", 100, 0.2, "at most 4.0"),
        ("cola", 103, 0.6, "6.4"),
        ("stsb", 103, 0.6, "7.0"),  # 6.4 times the root of 1.18
        ("tags", 100, 0.5, "–"),
    ):
        assert results.error_over_rows(dataset, size, [score]) == error


@pytest.mark.parametrize(
    "dataset", ["opinions", "questions", "shelf_questions", "tags"]
)
def test_one_answer_for_all_reaches_what_the_page_of_results_says(dataset):
    results = importlib.import_module("experiments.results")
    kept = json.loads(results.DEV_SETS.read_text("utf-8"))[dataset]
    dev = bb.load_dataset(dataset, "dev")
    assert kept["rows"] == len(next(iter(dev.values())))
    assert kept["constant"] == results.answer_alike(dataset, dev)


def test_the_page_of_devices_counts_the_runs_on_a_gpu():
    results = importlib.import_module("experiments.results")
    machines = [
        json.loads(path.read_text("utf-8"))["machine"]
        for path in results.KEPT.glob("*.json")
    ]
    page = (book.ROOT / "docs" / "devices.md").read_text("utf-8")
    count = sum("GPU (NVIDIA H200)" in machine for machine in machines)
    assert f"| {count} runs of fine-tuning," in page
    assert not any("GPU" in m and "tensorflow" in m for m in machines)
    assert not any("TPU" in machine for machine in machines)


def test_what_chapters_read_is_what_the_runs_give():
    for module, runs, page in (
        ("results", "list_for_chapters", "FOR_CHAPTERS"),
        ("variants", "list_for_chapter", "FOR_CHAPTER"),
        ("next_sentence", "list_for_chapter", "FOR_CHAPTER"),
    ):
        experiment = importlib.import_module(f"experiments.{module}")
        text = getattr(experiment, page).read_text("utf-8")
        kept = getattr(experiment, runs)()
        assert kept
        assert json.loads(text) == kept
