"""The experiment with and without next sentence prediction: its parts."""

import numpy as np

from bertbook.locations import shelf
from bertbook.pretraining.corpus import prepare
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.stream import ExampleStream
from bertbook.text.tokenizer import Tokenizer
from experiments import next_sentence


def test_kinds_see_the_same_rows_and_one_learns_from_words_alone(tmp_path):
    tokenizer = Tokenizer.from_pretrained("mini")
    corpus = prepare(shelf()[:5], tokenizer, tmp_path, held_out=0.0)
    pieces = Pieces.of(tokenizer)
    streams = {
        kind: next_sentence.make_stream(kind, corpus, pieces, 32, 7)
        for kind in next_sentence.TRAINED
    }
    (both, place), (words, same_place) = (
        next(stream.batches(8)) for stream in streams.values()
    )
    assert type(streams["both"]) is ExampleStream
    assert place == same_place
    for name, array in both.items():
        np.testing.assert_array_equal(words[name], array)
    weights = words.pop("next_sentence_weights")
    assert words.keys() == both.keys()
    assert weights.tolist() == [0.0] * 8


def test_documents_are_drawn_whole_and_from_all_over(tmp_path):
    documents = [f"doc {i}\nhas five words here too" for i in range(40)]
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(documents), encoding="utf-8")
    drawn = next_sentence.draw_documents(path, 50)
    assert drawn == next_sentence.draw_documents(path, 50)
    texts = ["\n".join(lines) for lines in drawn]
    assert set(texts) < set(documents)
    assert len(texts) == 8  # of seven words each: the eighth passes 50
    assert max(map(documents.index, texts)) > 20


def test_runs_of_one_seed_stand_together_by_kind():
    found = {
        f"pretrain_words_{seed}": {"held_out": {"mlm_loss": seed}}
        for seed in (0, 1)
    }
    for seed, accuracy in enumerate([[0.5, 0.7, 0.6], [0.8, 0.1, 0.2]]):
        found[f"rte_words_{seed}"] = {
            "scores": accuracy, "rows": 9, "dev_rows": 4, "one_answer": 0.5,
        }  # fmt: skip
    summary = next_sentence.summarize(found)
    assert summary["held_out"] == {"mlm_loss": {"words": [0, 1]}}
    assert summary["tasks"] == {
        "rte": {
            "one answer": 0.5, "rows": 9, "dev rows": 4, "words": [0.7, 0.8],
        }
    }  # fmt: skip
    assert summary["plan"]["tokens"] > 1_000_000


def test_every_run_names_what_it_does_and_is_planned_once():
    runs = list(next_sentence.RUNS)
    assert len(runs) == len(set(runs)) > 20
    assert all(len(name.split("_")) == 3 for name in runs)
    for kind in ("both", "words"):  # the same seeds, so that pairs compare
        assert f"qnli_{kind}_1" in runs
