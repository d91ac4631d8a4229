"""Every option of every command says what it is, and its default."""

import argparse
import re

import pytest

from bertbook.cli.main import _build_parser

WITHOUT = re.compile(r"without it|or as -|instead")


def parsers():
    """Returns the parsers of all commands by name."""
    parser = _build_parser()
    (action,) = (
        a for a in parser._actions if isinstance(a, argparse._SubParsersAction)
    )
    return {"": parser, **action.choices}


PARSERS = parsers()
OPTIONS = [
    (name, action)
    for name, parser in PARSERS.items()
    for action in parser._actions
    if not isinstance(action, argparse._HelpAction)
]


def test_every_command_is_here():
    assert set(PARSERS) == {
        "", "info", "convert", "export", "prepare", "pretrain", "finetune",
        "evaluate", "predict", "train-translation", "translate",
    }  # fmt: skip
    assert len(OPTIONS) > 100


@pytest.mark.parametrize("name", PARSERS)
def test_help_names_each_option_with_its_default(name):
    parser = PARSERS[name]
    text = " ".join(parser.format_help().split())
    for action in parser._actions:
        for option in action.option_strings:
            assert option in text
        nothing = (None, False, argparse.SUPPRESS)
        has_default = not any(action.default is value for value in nothing)
        if action.option_strings and has_default:
            assert f"(default: {action.default})" in text


@pytest.mark.parametrize(
    ("name", "action"), OPTIONS, ids=lambda x: getattr(x, "dest", x or "all")
)
def test_an_option_says_what_it_is_and_what_holds_without_it(name, action):
    if isinstance(action, argparse._SubParsersAction):
        assert all(choice.help for choice in action._choices_actions)
        return
    assert action.help
    assert len(action.help.split()) > 1
    if not action.option_strings or action.required or action.nargs == 0:
        return
    if action.default is None:
        assert WITHOUT.search(action.help), action.help


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("finetune", {"--processes", "--coordinator", "--process-id"}),
        (
            "pretrain",
            {"--processes", "--coordinator", "--process-id"}
            | {"--model-parallel"},
        ),
        ("prepare", {"--beam"}),
    ],
)
def test_what_few_need_is_in_a_group_at_the_end(name, options):
    group = PARSERS[name]._action_groups[-1]
    assert group.title == "advanced"
    assert {a.option_strings[0] for a in group._group_actions} == options
    text = PARSERS[name].format_help()
    assert text.index("\nadvanced:") < text.rindex(min(options))


@pytest.mark.parametrize("columns", ["1", "20", "0", "-5", "x", "500", ""])
def test_help_is_printed_at_any_width(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    for parser in PARSERS.values():
        assert "--help" in parser.format_help()
