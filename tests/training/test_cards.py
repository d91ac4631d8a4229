"""Cards of runs: names of files stand in Markdown as they are."""

import re

import pytest

from bertbook.training.cards import escape, write_card

RECORD = {
    "config": {
        "num_hidden_layers": 1,
        "hidden_size": 8,
        "num_attention_heads": 2,
        "vocab_size": 100,
        "max_position_embeddings": 16,
    },
    "recipe": {},
    "examples": {},
    "start": None,
}
NAMES = [
    "plain_name.txt",
    "*bold*.txt",
    "[a](http://b).txt",
    "![a](b)",
    "<img src=x>",
    "# title",
    "a\n\n# title",
    "`code`",
    "_a_",
    "a|b",
    "a\\",
    "~~a~~",
    "&lt;",
    "o\udcff",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_card_shows_the_name_of_a_file_as_it_is(name, tmp_path):
    corpus = {
        "files": [(name, 1)],
        "tokens": 3,
        "documents": 1,
        "held_out": 0.1,
    }
    write_card(tmp_path, RECORD, corpus)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert len(re.findall("^#", card, re.MULTILINE)) == 1
    assert escape(name) in card
    line = escape(name)
    assert not re.search(r"(?<!\\)[*`<>#|~!&\[\]()]", line.replace(r"\\", ""))
    shown = re.sub(r"\\(.)", r"\1", line)
    assert shown == "".join(c if c.isprintable() else " " for c in name)


def test_a_readme_of_a_user_stays(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("# My notes\n", "utf-8")
    corpus = {"files": [], "tokens": 3, "documents": 1, "held_out": 0.1}
    with pytest.warns(UserWarning, match=r"README\.md is not by bertbook"):
        write_card(tmp_path, RECORD, corpus)
    assert path.read_text("utf-8") == "# My notes\n"
    path.unlink()
    for tokens in (3, 4):  # a card of ours gives way to the next
        write_card(tmp_path, RECORD, {**corpus, "tokens": tokens})
    assert "Trained on 4 tokens" in path.read_text("utf-8")
