"""The rate that is chosen: by width, for adapters, in an old folder."""

import json

import pytest

import bertbook as bb
from bertbook.finetuning.rates import choose_rate
from tests.helpers.toys import make, toy_config

pytestmark = pytest.mark.usefixtures("quick_runs")
QUIET = bb.FinetuningOptions(verbose=False)
CLASSIFIER = "BertForSequenceClassification"
DATA = {"text": ["a", "b", "c", "d"], "label": [0, 1, 0, 1]}


class Sized:
    """What a model says of its size."""

    def __init__(self, width, layers):
        self.config = toy_config(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
        )

    def _flatten_layers(self, *args, **kwargs):
        return []


@pytest.mark.parametrize(
    ("width", "layers", "printed", "rate"),
    [
        (128, 2, "0.0003, chosen for 2 layers of width 128", 3e-4),
        (256, 4, "0.0003, chosen for 4 layers of width 256", 3e-4),
        (384, 6, "0.0001, chosen for 6 layers of width 384", 1e-4),
        (512, 1, "5e-05, chosen for 1 layer of width 512", 5e-5),
        (768, 12, "5e-05, chosen for 12 layers of width 768", 5e-5),
        (1024, 24, "5e-05, chosen for 24 layers of width 1024", 5e-5),
    ],
)
def test_the_width_of_a_model_decides(width, layers, printed, rate, capsys):
    assert choose_rate(Sized(width, layers)) == rate
    assert capsys.readouterr().out == f"learning rate {printed}\n"


def test_adapters_need_a_larger_rate(capsys):
    model = make(CLASSIFIER)
    assert choose_rate(model, verbose=False) == 3e-4
    bb.add_lora(model, rank=2)
    assert choose_rate(model) == 1e-3
    assert "chosen for adapters of" in capsys.readouterr().out


def recorded(out):
    return json.loads((out / "run.json").read_text())["learning_rate"]


def test_a_run_records_the_number_and_an_old_one_keeps_its_own(
    tmp_path, capsys
):
    options = {"epochs": 1, "batch_size": 4, "options": QUIET}
    bb.finetune(make(CLASSIFIER), DATA, out=tmp_path / "new", **options)
    assert recorded(tmp_path / "new") == 3e-4
    old = {"learning_rate": 5e-5, "out": tmp_path / "old", **options}
    history = bb.finetune(make(CLASSIFIER), DATA, **old)
    del old["learning_rate"]
    assert bb.finetune(make(CLASSIFIER), DATA, **old) == history
    assert recorded(tmp_path / "old") == 5e-5
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="learning_rate"):
        bb.finetune(make(CLASSIFIER), DATA, learning_rate=1e-4, **old)


def test_a_given_rate_is_taken_and_nothing_printed(capsys):
    options = bb.FinetuningOptions(verbose=True)
    bb.finetune(
        make(CLASSIFIER), DATA, epochs=1, learning_rate=1e-3, options=options
    )
    assert "chosen" not in capsys.readouterr().out
    bb.finetune(make(CLASSIFIER), DATA, epochs=1, options=options)
    assert "learning rate 0.0003, chosen for" in capsys.readouterr().out
