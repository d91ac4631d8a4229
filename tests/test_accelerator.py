"""The benchmark for a GPU or TPU: its arithmetic, its search, and a dry run."""

import json
import math
import time

import keras
import numpy as np
import pytest

from benchmarks import (
    accelerator,
    chips,
    device,
    device_tasks,
    device_training,
)
from bertbook.config import BertConfig

ON_JAX = keras.backend.backend() == "jax"
CONFIG = BertConfig(
    vocab_size=37,
    num_hidden_layers=3,
    hidden_size=10,
    num_attention_heads=2,
    intermediate_size=22,
    max_position_embeddings=16,
)
S, M = 16, 2  # tokens and hidden tokens of a row
BLOCKS = [  # the products of one row: how often, and m, k and n of each
    (3, S, 10, 30),  # queries, keys and values
    (3 * 2, S, 5, S),  # scores
    (3 * 2, S, S, 5),  # mixing
    (3, S, 10, 10),  # after the heads
    (2, S, 10, 22),  # the feed-forward network of all layers but the last
    (2, S, 22, 10),
]
HEADS = [(1, 1, 10, 10), (1, 1, 10, 2)]  # the pooler and two logits


def count(products):
    return sum(2 * often * m * k * n for often, m, k, n in products)


def test_flops_are_those_of_each_matrix_product():
    last = [(1, 1, 10, 22), (1, 1, 22, 10)]  # [CLS] alone
    forward = count(BLOCKS + last + HEADS)
    assert chips.forward_flops(CONFIG, S) == forward
    last = [(1, 1 + M, 10, 22), (1, 1 + M, 22, 10)]
    words = [(1, M, 10, 10), (1, M, 10, 37)]
    forward = count(BLOCKS + last + HEADS + words)
    assert chips.forward_flops(CONFIG, S, M) == forward
    assert chips.training_flops(CONFIG, S, M) == 3 * forward


def test_flops_are_six_for_each_number_and_token_of_training():
    length, slots = 128, 20
    base = BertConfig.named("base")
    numbers = 12 * (4 * 768**2 + 2 * 768 * 3_072)
    scores = 12 * 12 * length**2 * 768
    head = 6 * slots * (768**2 + 768 * 30_522)
    whole = 6 * numbers * length + scores + head
    left_out = 6 * 2 * 768 * 3_072 * (length - slots - 1)
    small = 6 * (768**2 + 2 * 768)
    found = chips.training_flops(base, length, slots)
    assert found == whole - left_out + small
    assert 0.95 < found / whole < 1


@pytest.mark.skipif(not ON_JAX, reason="reads what JAX traces")
def test_flops_are_those_of_the_step_that_jax_traces():
    import jax

    recipe = device_training.PretrainingRecipe(steps=10, batch_size=4)
    model = device_training.make_model(CONFIG, CONFIG, recipe)
    device_training.compile_for_pretraining(model, recipe)
    groups = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    state = tuple([v.value for v in group] for group in groups)
    batch = device_training.draw_pretraining(4, S, 37)
    step = jax.make_jaxpr(model.train_step)(
        state, next(device_training.to_steps(batch))
    )
    assert device_training.slots_of(S) == M
    assert traced(step.jaxpr) == 4 * chips.training_flops(CONFIG, S, M)


def traced(jaxpr):
    """Returns the FLOPs of the products of a jaxpr, inner ones counted."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (summed, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += (
                2
                * math.prod(equation.outvars[0].aval.shape)
                * math.prod(shape[axis] for axis in summed)
            )
        for value in equation.params.values():
            for part in value if isinstance(value, list | tuple) else [value]:
                inner = getattr(part, "jaxpr", part)
                total += traced(inner) if hasattr(inner, "eqns") else 0
    return total


PEAKS = {
    "NVIDIA H100 80GB HBM3": 989,
    "NVIDIA H100 PCIe": None,
    "NVIDIA H200": 989,
    "NVIDIA A100-SXM4-40GB": 312,
    "Tesla T4": 65,
    "NVIDIA L4": 121,
    "NVIDIA L40": None,
    "TPU v5 lite": 197,
    "TPU v5": None,
    "TPU v6 lite": 918,
    "TPU v4": 275,
    "cpu": None,
}


def test_the_peak_is_that_of_the_device_or_unknown():
    assert {kind: chips.peak_of(kind) for kind in PEAKS} == PEAKS


def test_the_first_batch_is_a_power_of_two_that_should_fit():
    base, large = map(BertConfig.named, ("base", "large"))
    h100 = 76e9
    assert chips.first_rows(base, 128, h100) == 256
    assert chips.first_rows(base, 512, h100) == 32
    assert chips.first_rows(large, 128, h100) == 64
    assert chips.first_rows(large, 512, 1e9) == 1
    assert chips.first_rows(base, 128, 1e15, most=512) == 512
    assert chips.first_rows(base, 128, None) == 8


class Card:
    """Runs so many rows a second, by the batch, and has memory for `most`."""

    def __init__(self, speeds, most=10**9, error=None):
        self.speeds = speeds
        self.most = most
        self.error = error or RuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate."
        )

    def __call__(self, rows):
        if rows > self.most:
            raise self.error
        return {"rows_per_second": self.speeds[rows]}


@pytest.fixture
def no_garbage(monkeypatch):
    """Spares the seconds of a search through all that other tests left."""
    monkeypatch.setattr(device_training.gc, "collect", lambda: 0)


def search(card, start, tries=3, has_time=True):
    return device_training.search_rows(card, start, tries, lambda _: has_time)


def rows_of(tried):
    return [one["rows"] for one in tried]


@pytest.mark.usefixtures("no_garbage")
class TestSearch:
    def test_rows_are_doubled_while_that_is_faster(self):
        best, tried = search(Card({8: 100, 16: 150, 32: 200}), 8)
        assert best == {"rows": 32, "rows_per_second": 200}
        assert rows_of(tried) == [8, 16, 32]

    def test_a_gain_of_less_than_a_twentieth_ends_it(self):
        for second, rows in ((104, 16), (90, 8)):
            best, tried = search(Card({8: 100, 16: second}), 8)
            assert best["rows"] == rows
            assert rows_of(tried) == [8, 16]

    def test_the_end_of_memory_ends_it(self):
        best, tried = search(Card({8: 100}, most=8), 8)
        assert best["rows"] == 8
        assert "RESOURCE_EXHAUSTED" in tried[1]["error"]

    def test_a_first_batch_that_is_too_large_is_halved(self):
        card = Card({16: 80, 32: 100}, most=20)
        assert search(card, 64, has_time=False)[0]["rows"] == 16
        with pytest.raises(MemoryError, match="No batch fits"):
            search(Card({}, most=0), 64)
        with pytest.raises(MemoryError, match="'rows': 1"):
            search(Card({}, most=0), 1)

    def test_without_time_one_batch_is_tried(self):
        best, tried = search(Card({8: 100, 16: 200}), 8, has_time=False)
        assert best["rows"] == 8
        assert rows_of(tried) == [8]

    def test_another_error_is_raised_until_something_is_measured(self):
        broken = ValueError("no kernel")
        with pytest.raises(ValueError, match="no kernel"):
            search(Card({}, most=0, error=broken), 8)
        best, tried = search(Card({8: 100}, most=8, error=broken), 8)
        assert best["rows"] == 8
        assert tried[1]["error"] == "ValueError: no kernel"


def test_the_clock_mends_its_guesses():
    clock = device.Clock(2, time.perf_counter())
    assert clock.left() == pytest.approx(120 - device.RESERVE, abs=1)
    assert clock.expected(40) == 40
    clock.learn(10, 5)
    assert clock.expected(40) == 20
    clock.learn(10, 1_000)
    assert clock.expected(40) == 120  # one slow part proves little


def test_the_most_important_parts_come_first():
    options = accelerator.read_options([])
    names = [part.name for part in accelerator.plan(options, True)]
    assert names == [
        "pretraining base 128",
        "pretraining base 512",
        "pretraining large 128",
        "fine-tuning, 128 tokens",
        "inference",
        "attention",
        "float32 base 128",
        "pretraining large 512",
        "fine-tuning, lengths of SST-2",
        "KerasHub",
    ]
    options = accelerator.read_options(["--skip-peer", "--sizes", "mini"])
    names = [part.name for part in accelerator.plan(options, True)]
    assert names[:2] == ["pretraining mini 128", "pretraining mini 512"]
    assert "KerasHub" not in names


def test_rows_of_pretraining_hide_real_tokens():
    batch = device_training.draw_pretraining(6, 128, 1_000)
    places = batch["masked_lm_positions"]
    assert places.shape == (6, 20)
    assert (np.diff(places, axis=1) > 0).all()
    assert places.min() > 0
    assert np.take_along_axis(batch["attention_mask"], places, 1).all()
    assert device_training.slots_of(512) == 76


def test_the_texts_have_the_lengths_of_sst2():
    assert np.mean(device_tasks.SST2_LENGTHS) == pytest.approx(13.95, abs=0.3)
    texts = device_tasks.draw_texts((4, 9), 5)["text"]
    assert [len(text.split()) for text in texts] == [2, 7, 2, 7, 2]


@pytest.mark.skipif(ON_JAX, reason="TensorFlow is refused")
def test_another_backend_is_refused():
    with pytest.raises(SystemExit, match="KERAS_BACKEND=jax"):
        accelerator.main([])


@pytest.mark.skipif(not ON_JAX, reason="the benchmark needs JAX")
class TestOnAProcessor:
    def test_a_size_for_a_card_is_refused(self):
        with pytest.raises(SystemExit, match="--sizes tiny"):
            accelerator.main([])

    def test_an_unknown_size_is_refused(self):
        with pytest.raises(SystemExit, match="enormous"):
            accelerator.main(["--sizes", "enormous"])

    def test_a_dry_run_measures_every_part(self, tmp_path, capsys):
        path = tmp_path / "new" / "found.json"
        accelerator.main(
            ["--sizes", "tiny", "--lengths", "16,24", "--out", str(path),
             "--skip-peer", "--minutes", "20"],
            time.perf_counter(),
        )  # fmt: skip
        record = json.loads(path.read_text("utf-8"))
        parts = record["parts"]
        assert record["is_dry_run"]
        assert record["device"]["peak_tflops"] is None
        found = {n: p for n, p in parts.items() if n != "KerasHub"}
        assert len(found) == 7
        assert {part["status"] for part in found.values()} == {"measured"}
        for name, part in found.items():
            assert part["recipe"]
            if name != "attention":
                assert part["rows_per_second"] > 0
        first = parts["pretraining tiny 16"]
        assert first["step_alone"]["rows_per_second"] > 0
        assert first["share_of_peak"] is None
        assert first["rows"] == parts["float32 tiny 16"]["rows"]
        attention = parts["attention"]
        fused = attention["median_time_over_einsum"]["fused 16"]
        assert fused["largest_difference"] < 0.05
        assert "cudnn, lengths 16" in attention["did_not_run"]
        printed = capsys.readouterr().out
        assert printed.count("pretraining tiny 24") == 2  # as it went, table

    def test_a_part_that_fails_is_text_and_the_rest_goes_on(self, tmp_path):
        path = tmp_path / "found.json"
        options = accelerator.read_options(["--out", str(path)])
        options.sizes = ["tiny"]
        bench = device.Bench(options, time.perf_counter())
        kept = []

        def fail(bench):
            raise RuntimeError("no such kernel")

        def measure(bench):
            kept.append(json.loads(path.read_text("utf-8"))["parts"])
            return {"rows_per_second": 1.0}

        bench.take_all(
            [
                device.Part("first", 1, fail),
                device.Part("second", 10**6, measure),
                device.Part("third", 1, measure),
            ]
        )
        assert list(kept[0]) == ["first", "second"]  # written as it went
        parts = json.loads(path.read_text("utf-8"))["parts"]
        assert parts["first"]["status"] == "failed"
        assert parts["first"]["error"] == "RuntimeError: no such kernel"
        assert parts["second"]["status"].startswith("no time")
        assert parts["third"]["status"] == "measured"


def test_the_peak_of_a_part_is_its_own(monkeypatch):
    stats = {"bytes_in_use": 5, "peak_bytes_in_use": 100}
    monkeypatch.setattr(device, "memory_stats", lambda: dict(stats))
    with device.MemoryWatch() as watch:
        stats["bytes_in_use"] = 60
        time.sleep(0.3)
    assert watch.result["peak_bytes"] == 60
    assert watch.result["bytes_before"] == 5
    with device.MemoryWatch() as watch:
        stats["peak_bytes_in_use"] = 120
    assert watch.result == {
        "bytes_before": 60,
        "peak_bytes": 120,
        "peak_by": "JAX",
    }
