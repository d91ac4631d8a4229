"""The tables of docs/scaling.md are those of its formulas and measurements."""

import json
import re
import statistics
from pathlib import Path

import pytest

from benchmarks import chips, memory
from bertbook.config import BertConfig
from bertbook.model.bert import BertForPreTraining

ROOT = Path(__file__).resolve().parents[1]
PAGE, DEVICES = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("scaling.md", "devices.md")
)
SIZES = "tiny", "mini", "small", "base", "large"
SCHEDULE = 256e6  # rows of the paper, nine tenths of them of 128 tokens
H200 = 989  # TFLOP/s


def accelerator():
    path = ROOT / "data" / "runs" / "accelerator_h200.json"
    return json.loads(path.read_text(encoding="utf-8"))["parts"]


def results(name):
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def size_rows():
    for size in SIZES:
        count = memory.parameters(BertConfig.named(size))
        state = [f"{each * count / 1e9:.2f}" for each in (4, 8, 4)]
        yield row(size, f"{count:,}", *state)


def deviation(size, length, rows, measured):
    config = BertConfig.named(
        size, vocab_size=memory.VOCABULARY, max_position_embeddings=length
    )
    _, rest = memory.formula(config, rows, length, "float32")
    return rest, rest / measured["temporary"] - 1


def measured_rows():
    for name, measured in results("memory_jax").items():
        size, length, rows, dtype = name.split()
        if dtype == "float32":
            rest, off = deviation(size, int(length), int(rows), measured)
            told = measured["state"], measured["temporary"], rest
            megabytes = [f"{each / 1e6:,.0f}" for each in told]
            count = f"{measured['parameters']:,}"
            yield row(size, length, rows, count, *megabytes, f"{off:+.1%}")


def formula_rows():
    for size in ("base", "large"):
        config = BertConfig.named(size)
        for length, rows in ((128, 32), (128, 256), (512, 8), (512, 32)):
            total = [
                sum(memory.formula(config, rows, length, dtype)) / 1e9
                for dtype in memory.DTYPES
            ]
            scores = rows * length**2 * memory.KEPT["mixed_bfloat16"][1]
            scores *= config.num_hidden_layers * config.num_attention_heads
            numbers = [f"{each:.1f}" for each in (*total, scores / 1e9)]
            yield row(size, length, rows, *numbers)


def flops_rows():
    for size in SIZES:
        config = BertConfig.named(size)
        flops = [
            chips.training_flops(config, length, memory.SLOTS[length]) / 1e9
            for length in (128, 512)
        ]
        yield row(size, *(f"{each:.1f}" for each in flops))


def schedule_flops(size):
    config = BertConfig.named(size)
    short, long = (
        chips.training_flops(config, length, memory.SLOTS[length])
        for length in (128, 512)
    )
    return SCHEDULE * (0.9 * short + 0.1 * long)


def hours_rows():
    for where, size, share_of_rows, count, peak, share in (
        ("a T4", "mini", 0.1, 1, 65, 0.25),
        ("an H200", "base", 1, 1, H200, 0.29),
        ("an H200", "large", 1, 1, H200, 0.29),
        ("8 A100", "large", 1, 8, 312, 0.45),
        ("TPU v5e-8", "base", 1, 8, 197, 0.40),
        ("TPU v5e-16", "base", 1, 16, 197, 0.40),
        ("TPU v5e-256", "base", 1, 256, 197, 0.40),
        ("TPU v5e-256", "large", 1, 256, 197, 0.40),
    ):
        flops = share_of_rows * schedule_flops(size)
        hours = flops / (count * peak * 1e12 * share * 3_600)
        rows = f"{256 * share_of_rows:g} million"
        yield row(
            where, size, rows, f"{count} × {peak}", f"{share:.2f}",
            f"{hours:.1f}",
        )  # fmt: skip


def core_rows():
    for length, told in results("rows").items():
        rates = told["rows_a_second"], told["tokens_a_second"]
        yield row(length, *(f"{rate:,}" for rate in rates))


def process_rows():
    for count, told in results("processes_jax").items():
        speeds = ", ".join(f"{each:.2f}" for each in told["steps_a_second"])
        ratio = f"{told['times_as_fast_as_one']:.2f}"
        yield row(count, speeds, ratio, told["cpu_milliseconds_a_step"])


def step_rows():
    for case, told in results("steps").items():
        size, rows, length = case.split(":")
        ratios = (f"{each['median']:.2f}" for each in told.values())
        yield row(f"`{size}`", f"{rows} rows of {length}", *ratios)


def padding_rows():
    for name, what in (
        ("sst2", "SST-2, 32"),
        ("qnli", "QNLI, 32"),
        ("squad", "SQuAD, 16 windows of 384"),
    ):
        told = results("padding")[name]
        shares = (
            f"{told[f'real_{way}']:.0%}"
            for way in ("at_the_limit", "by_length", "packed")
        )
        ratios = (
            f"{told[f'flops_over_packed_{size}']:.2f}"
            for size in ("mini", "base")
        )
        found = told["time_over_packed_mini"]
        median, low, high = (
            f"{found[n]:.2f}" for n in ("median", "low", "high")
        )
        time = f"{median} ({low} to {high})"
        yield row(what, told["mean_tokens"], *shares, *ratios, time)


def test_a_table_is_recomputed():
    for rows in (
        size_rows,
        measured_rows,
        formula_rows,
        flops_rows,
        hours_rows,
        core_rows,
        process_rows,
        step_rows,
        padding_rows,
    ):
        expected = list(rows())
        assert expected
        assert [line for line in expected if line not in PAGE] == []


def gpu_rows():
    parts = accelerator()
    for what, part in (
        ("pre-training, `base`, 128 tokens", "pretraining base 128"),
        ("the same in float32", "float32 base 128"),
        ("pre-training, `base`, 512 tokens", "pretraining base 512"),
        ("pre-training, `large`, 128 tokens", "pretraining large 128"),
        ("pre-training, `large`, 512 tokens", "pretraining large 512"),
        ("inference, `base`, 128 tokens", "inference"),
    ):
        found = parts[part]
        speed, share = found["rows_per_second"], found["share_of_peak"]
        yield row(what, found["rows"], f"{speed:,.0f}", f"{share:.2f}")
    half = parts["float32 base 128"]["rows_per_second_in_16_bits"]
    yield row("the same on the second machine", 512, f"{half:,.0f}", "0.30")
    ratios = parts["attention"]["median_time_over_einsum"]
    for what, path in (
        ("JAX's own, by XLA", "xla"),
        ('cuDNN, any mask: `attention="fused"`', "fused"),
        ("cuDNN, told the lengths", "cudnn, lengths"),
    ):
        found = (ratios[f"{path} {length}"] for length in (128, 512))
        yield row(what, *(f"{each['median']:.2f}" for each in found))


def test_what_was_measured_on_a_gpu_is_told():
    assert [line for line in gpu_rows() if line not in DEVICES] == []
    parts = accelerator()
    latency = parts["inference"]["one_row_milliseconds"]["median"]
    half = parts["float32 base 128"]["times_as_fast_in_16_bits"]
    peer = parts["KerasHub"]["ratio"]
    prose = " ".join(DEVICES.split())
    for told in (
        f"takes {latency:.1f} milliseconds, the median",
        f"Float32 takes {half:.1f} times as long",
        f"takes {peer['median']:.1f} times as long as ours "
        f"({peer['low']:.1f} to {peer['high']:.1f}",
    ):
        assert told in prose


def test_the_formula_holds_for_sizes_that_it_was_not_fitted_to():
    checked = 0
    for name, measured in results("memory_jax").items():
        size, length, rows, dtype = name.split()
        if dtype == "float32":
            _, off = deviation(size, int(length), int(rows), measured)
            most = 0.02 if size in ("tiny", "mini") else 0.07
            assert abs(off) < most, name
            state = memory.STATE * measured["parameters"]
            assert measured["state"] == pytest.approx(state, rel=0.004)
            checked += size in ("small", "base")
    assert checked == 6


def test_mixed_precision_is_fitted_to_the_gpu():
    for rows, length, part in (
        (512, 128, "pretraining base 128"),
        (64, 512, "pretraining base 512"),
    ):
        found = accelerator()[part]
        assert found["rows"] == rows
        config = BertConfig.named("base")
        total = sum(memory.formula(config, rows, length, "mixed_bfloat16"))
        assert total == pytest.approx(found["memory"]["peak_bytes"], rel=0.01)


def test_parameters_are_those_of_the_model():
    config = BertConfig.named("tiny", vocab_size=50, hidden_size=32)
    model = BertForPreTraining(config)
    assert memory.parameters(config) == model.count_params()


def test_real_tokens_in_a_packed_row():
    told = results("padding")["corpus2"]
    single, packed = (
        told[way]["real_tokens_a_row"] for way in ("one_a_row", "packed")
    )
    (found,) = re.findall(
        r"that is\n(\d+) real tokens a row in place of (\d+): ([\d.]+) times",
        PAGE,
    )
    ratio = f"{packed / single:.2f}"
    assert found == (f"{packed:.0f}", f"{single:.0f}", ratio)
    (most,) = re.findall(r"No packing could reach\nmore than ([\d.]+)\.", PAGE)
    assert most == f"{512 / single:.2f}"
    time = told["time_of_a_row"]["median"]
    assert f"a packed row takes {time:.2f} times as long" in PAGE
    assert f"so that {packed / single / time:.2f} times as many" in PAGE


def test_what_several_processes_cost_together():
    used = {
        count: told["cpu_milliseconds_a_step"]
        for count, told in results("processes_jax").items()
    }
    two, four = (f"{used[count] / used['1']:.1f}" for count in "24")
    assert f"they take {two} times the CPU of one" in " ".join(PAGE.split())
    assert f"and four take {four} times" in PAGE


def test_numbers_of_the_prose():
    base = BertConfig.named("base")
    flops = chips.training_flops(base, 128, 20)
    count = memory.parameters(base)
    speed = statistics.mean(results("processes_jax")["1"]["steps_a_second"])
    for text, value in (
        (r"take ([\d.]+) ms, and a row", 1e3 * 8 * count / 200e9),
        (r"row of 128 tokens takes ([\d.]+) ms", 1e3 * flops / (0.4 * 197e12)),
        (r"For `base` that is\n([\d.e]+) FLOP", schedule_flops("base")),
        (r"for `large` ([\d.e]+)\.", schedule_flops("large")),
        (r"seconds, or\n([\d.]+) minutes", 64_000 / (speed * 32) / 60),
        (
            r"680 rows a second: ([\d.]+) hours",
            SCHEDULE * (0.9 / 4_240.9 + 0.1 / 679.5) / 3_600,
        ),
        (
            r"248 rows a second: ([\d.]+) hours",
            SCHEDULE * (0.9 / 1_224.7 + 0.1 / 247.6) / 3_600,
        ),
    ):
        (found,) = re.findall(text, PAGE)
        assert float(found) == pytest.approx(value, rel=0.02), text
    (share,) = re.findall(r"the sum takes a (\w+) of the time", PAGE)
    times = 32 * flops / (0.4 * 197e12) / (8 * count / 200e9)
    assert {"fifth": 5, "sixth": 6, "seventh": 7}[share] == round(times)
    chips_rate = 256 * 0.4 * 197e12 / flops
    cores = chips_rate / results("rows")["128"]["rows_a_second"]
    (told,) = re.findall(r"that is\n(\d+) cores on each host", PAGE)
    assert int(told) == -(-cores // 1)
