"""The experiment of the help desk: its parts, without training."""

import csv

from bertbook.config import BertConfig
from experiments import help_desk


def test_a_slip_is_a_row_of_the_table():
    with open(help_desk.SAMPLE / "messages.csv", encoding="utf-8") as file:
        tickets = [int(row["ticket"]) for row in csv.DictReader(file)]
    assert set(help_desk.WRONG) < set(tickets)
    data = help_desk.read("messages")
    assert {str(ticket) for ticket in help_desk.WRONG} < set(data["id"])


def test_counted_words_judge_each_row_in_the_half_that_did_not_see_it():
    judged = help_desk.look_for_slips(help_desk.COUNTED, seed=0)["first"]
    assert len(set(judged)) == len(judged) == 60
    assert judged == help_desk.look_for_slips(help_desk.COUNTED, 0)["first"]


def test_a_part_is_planned_once_and_each_start_has_three_seeds():
    for start in (help_desk.COUNTED, *help_desk.RECIPES):
        planned = [p for p in help_desk.PARTS if p.startswith(f"test {start} ")]
        assert len(planned) == help_desk.SEEDS >= 3


def test_the_kept_runs_are_of_the_tables_that_ship():
    kept = help_desk.summarize()
    for part in ("messages", "test"):
        assert kept[part] == [help_desk.fingerprint(help_desk.read(part))]
    assert all(len(runs) >= 3 for runs in kept["accuracy"].values())
    assert set(kept["sets"]) == set(help_desk.SETS)


def test_a_size_that_is_measured_is_the_published_one():
    for size in ("mini", "base"):
        config = help_desk.config_of(size)
        assert config.hidden_size == BertConfig.named(size).hidden_size
