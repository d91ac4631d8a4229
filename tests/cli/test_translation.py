"""The commands `train-translation` and `translate`."""

import argparse
import json

import pytest

import bertbook as bb
from bertbook.cli.main import main
from bertbook.cli.translation import add_training, config_of
from bertbook.translation.train import SMALL
from tests.helpers.decoders import seq2seq

pytestmark = pytest.mark.usefixtures("quick_runs")
SMALLER = {
    "--vocab-size": 300,
    "--layers": 1,
    "--hidden-size": 12,
    "--heads": 3,
    "--max-length": 48,
    "--steps": 2,
    "--batch-tokens": 2_048,  # so that one batch holds all
    "--limit": 40,
}


def words_of(out):
    words = ["train-translation", "translation", "--out", str(out)]
    return [*words, *(str(w) for pair in SMALLER.items() for w in pair)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory, quick_runs):
    """A folder that `train-translation` wrote."""
    folder = tmp_path_factory.mktemp("trained")
    assert main(words_of(folder)) == 0
    return folder


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder with drawn weights, which write something."""
    folder = tmp_path_factory.mktemp("drawn")
    seq2seq().save_pretrained(folder)
    return folder


def test_the_folder_holds_a_translator_of_that_size(trained, capsys):
    config = bb.Seq2SeqTransformer.from_pretrained(trained).config
    assert (config.hidden_size, config.intermediate_size) == (12, 48)
    assert config.vocab_size <= 300
    before = (trained / "model.safetensors").stat().st_mtime_ns
    assert main(words_of(trained)) == 0
    assert "nothing is changed" in capsys.readouterr().out
    assert (trained / "model.safetensors").stat().st_mtime_ns == before
    assert main([*words_of(trained), "--seed", "3"]) == 2
    assert "`recipe.seed` was 0, now 3" in capsys.readouterr().err


def test_translate_prints_a_line_for_each_text(drawn, tmp_path, capsys):
    texts = ["a b", "c"]
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    words = ["translate", "--model", str(drawn), "--max-length", "5"]
    words += ["--greedy", "--batch-size", "2"]
    expected = bb.translate(drawn, texts, 5, search="greedy", batch_size=2)
    assert main([*words, "--file", str(path)]) == 0
    beside = [expected[0], "", expected[1]]
    assert capsys.readouterr().out.splitlines() == beside
    assert any(expected)


def test_a_text_that_is_unknown_whole_is_one_line(drawn, capsys):
    words = ["translate", "--model", str(drawn), "--max-length", "5"]
    assert main([*words, "--greedy", "a", "😀"]) == 2
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1  # of the text before
    (line,) = captured.err.splitlines()
    assert "Line 2: A source must hold something that the vocabulary" in line
    assert "Received: '😀'" in line


def test_evaluate_measures_a_translator(drawn, tmp_path, capsys, monkeypatch):
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    folder = tmp_path / "translation"
    folder.mkdir()
    rows = "english\tspanish\na b\tc d\ne\tf\n"
    (folder / "dev.tsv").write_text(rows, encoding="utf-8")
    words = ["evaluate", "translation", "--model", str(drawn)]
    words += ["--data-dir", str(tmp_path), "--max-length", "5"]
    assert main([*words, "--batch-size", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["bleu"] <= 100
    assert set(found) == {"bleu", "chrf", "signatures"}


def test_the_defaults_are_the_small_translator():
    parser = argparse.ArgumentParser()
    add_training(parser.add_argument)
    options = parser.parse_args(["spa_eng", "--out", "x"])
    assert config_of(options) == SMALL
    words = ["spa_eng", "--out", "x", "--shared-vocabulary", "--layers", "2"]
    config = config_of(parser.parse_args(words))
    assert config.target_vocab_size is None
    assert config.num_hidden_layers == config.decoder_layers == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["translate", "--model", "nowhere", "a"], "nowhere"),
        (
            ["translate", "--model", "mini", "a"],
            "must be 'seq2seq_transformer'",
        ),
        (["train-translation", "spaeng", "--out", "x"], "Did you mean"),
        (["train-translation", "opinions", "--out", "x"], "columns `source`"),
        (
            ["train-translation", "translation", "--out", "x", "--limit", "0"],
            "`--limit` must be an integer >= 1. Received: 0",
        ),
        (
            ["train-translation", "translation", "--out", "x", "--limit=-5"],
            "`--limit` must be an integer >= 1. Received: -5",
        ),
        (
            ["train-translation", "a", "--out=x", "--intermediate-size", "0"],
            "`--intermediate-size` must be an integer >= 1. Received: 0",
        ),
        (
            ["train-translation", "translation", "--out", "x", "--steps", "0"],
            "`steps`",
        ),
        (
            ["train-translation", "translation", "--out", "x", "--heads", "5"],
            "`hidden_size` must be a multiple",
        ),
    ],
)
def test_a_mistake_is_an_error_without_a_traceback(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err
