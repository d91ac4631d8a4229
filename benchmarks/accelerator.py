"""How fast is the package on this GPU or TPU?

    KERAS_BACKEND=jax python -m benchmarks.accelerator [--minutes 10]
        [--sizes base,large] [--lengths 128,512] [--out FILE] [--skip-peer]

Measures, the most important first, and begins nothing that the minutes would
not hold: pre-training of each size and length as `bb.pretrain` runs it,
fine-tuning by `bb.finetune`, inference, the paths of attention, float32 beside
16 bits, KerasHub where it is installed. Weights, ids and texts are random, so
nothing is downloaded. The file is written after every part.

On a processor `--sizes tiny` is a dry run, with one layer and few words; its
figures say nothing.
"""

import argparse
import functools
import sys
from pathlib import Path

from benchmarks import device, turns
from benchmarks.device import Bench, Part
from benchmarks.device_attention import measure_attention
from benchmarks.device_tasks import (
    SST2_LENGTHS,
    measure_finetuning,
    measure_inference,
)
from benchmarks.device_training import (
    measure_float32,
    measure_pretraining,
    pretraining_name,
)
from bertbook.config import BertConfig
from bertbook.runtime import choose_backend

SMALL = ("tiny", "mini", "small")  # what a processor may be asked for


def measure_peer(bench, size):
    """Times KerasHub's masked words beside ours, in turns."""
    from benchmarks import pretraining

    rows = 2 if bench.is_dry else 64
    batch = pretraining.draw_batch(rows)
    backbone, head = pretraining.draw_weights(size)
    ours = pretraining.build_ours(backbone, head, bench.dtype)
    peer = pretraining.build_hub(size, backbone, head, bench.dtype, True)
    result = turns.in_turns(
        pretraining.repeated(pretraining.step_of(ours, batch)),
        {"peer": pretraining.repeated(
            pretraining.step_of(peer, batch, pretraining.rename)
        )},
    )["peer"]  # fmt: skip
    tokens = rows * pretraining.LENGTH * pretraining.STEPS
    return {
        "ratio": result,
        "rows_per_second": round(
            rows * pretraining.STEPS / result["seconds_ours"], 1
        ),
        "tokens_per_second_ours": round(tokens / result["seconds_ours"]),
        "tokens_per_second_peer": round(tokens / result["seconds_theirs"]),
        "recipe": (
            f"{size}, masked words alone, {rows} rows of "
            f"{pretraining.LENGTH} tokens, {pretraining.SLOTS} hidden, a "
            f"vocabulary of {pretraining.VOCABULARY:,}, {bench.dtype}, no "
            f"dropout, {pretraining.STEPS} calls of `train_on_batch` a turn"
        ),
    }


def plan(options, is_hub_installed):
    """Returns the parts, the most important first."""
    sizes, lengths = options.sizes, options.lengths
    first = sizes[0]
    pairs = [(s, n) for s in sizes for n in lengths]
    pairs.sort(key=lambda p: sizes.index(p[0]) + lengths.index(p[1]))
    pretraining = [pretraining_part(*pair) for pair in pairs]
    # Of two sizes and lengths, the larger of both comes later.
    early = sum(
        sizes.index(size) + lengths.index(length) < 2 for size, length in pairs
    )
    parts = [
        *pretraining[:early],
        Part("fine-tuning, 128 tokens", 40, functools.partial(
            measure_finetuning, size=first, length=128, lengths=(128,),
            count=1_600)),
        Part("inference", 20, functools.partial(measure_inference, size=first)),
        Part("attention", 15, functools.partial(
            measure_attention, size=first, lengths=lengths)),
        Part(f"float32 {first} {lengths[0]}", 45, functools.partial(
            measure_float32, size=first, length=lengths[0])),
        *pretraining[early:],
        Part("fine-tuning, lengths of SST-2", 80, functools.partial(
            measure_finetuning, size=first, length=128, lengths=SST2_LENGTHS,
            count=6_400)),
    ]  # fmt: skip
    if is_hub_installed and not options.skip_peer:
        peer = functools.partial(measure_peer, size=first)
        parts.append(Part("KerasHub", 80, peer))
    return parts


def pretraining_part(size, length):
    """Returns the part that pre-trains one size at one length."""
    measure = functools.partial(measure_pretraining, size=size, length=length)
    guess = 80 if size == "large" else 45
    return Part(pretraining_name(size, length), guess, measure)


def read_options(arguments=None):
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accelerator",
        description="How fast is the package on this GPU or TPU?",
    )
    parser.add_argument("--out", type=Path, help="the JSON file")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sizes", type=names_in, default=["base", "large"])
    parser.add_argument("--lengths", type=numbers_in, default=[128, 512])
    parser.add_argument("--skip-peer", action="store_true")
    return parser.parse_args(arguments)


def names_in(text):
    """Returns the names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers_in(text):
    """Returns the numbers of a list with commas."""
    return [int(name) for name in names_in(text)]


def refusal(options):
    """Returns why nothing can be measured here, or None."""
    if choose_backend() != "jax":
        return "This needs the JAX backend: set KERAS_BACKEND=jax."
    unknown = [s for s in options.sizes if s not in BertConfig.PUBLISHED]
    if unknown or not options.sizes or not options.lengths:
        return "`--sizes` and `--lengths` must name some. Received: " + (
            f"{options.sizes} and {options.lengths}."
        )
    is_cpu = device.device_facts()["platform"] == "cpu"
    if is_cpu and not set(options.sizes) <= set(SMALL):
        return (
            "JAX found no GPU or TPU, and a processor would take hours. For "
            "a dry run add `--sizes tiny`."
        )
    return None


def main(arguments=None, began=device.BEGAN):
    """Measures what there is time for, keeps it and prints a table."""
    options = read_options(arguments)
    if why := refusal(options):
        sys.exit(why)
    if options.out is None and "tiny" not in options.sizes:
        options.out = turns.RESULTS / "accelerator.json"
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
    bench = Bench(options, began)
    print(f"{bench.device['kind']}, {bench.dtype}", flush=True)
    is_hub_installed = device.version_of("keras-hub") != "not installed"
    bench.take_all(plan(options, is_hub_installed))
    if not is_hub_installed and not options.skip_peer:
        bench.parts["KerasHub"] = {"status": "not installed"}
    bench.write()
    print(f"\n{bench.device['kind']}, {bench.dtype}")
    for name, found in bench.parts.items():
        print(device.line_of(name, found))
    if options.out is not None:
        print(f"kept in {options.out}")


if __name__ == "__main__":
    main()
