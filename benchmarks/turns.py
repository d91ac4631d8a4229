"""Timing two programs in turns: A B A B, so that a noisy machine hits both."""

import json
import os
import platform
import statistics
import time
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PAIRS = 9


def in_turns(ours, peers, pairs=PAIRS):
    """Runs us and the peers in turns and returns the ratios of the times.

    Every round runs each of them once, in changing order; all run once
    before, unmeasured.

    Args:
        ours: A function without arguments.
        peers: A dict of functions that do the same work.
        pairs: How many rounds to measure.

    Returns:
        For each peer a dict: `median`, `low` and `high` of its time over ours
        (above 1: we are faster), and the median seconds of both.
    """
    functions = {"ours": ours, **peers}
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for number in range(pairs):
        order = list(functions)
        for name in order if number % 2 else reversed(order):
            start = time.perf_counter()
            functions[name]()
            times[name].append(time.perf_counter() - start)
    return {name: _ratios(times["ours"], times[name]) for name in peers}


def _ratios(ours, theirs):
    """Returns the median and the range of the ratios of two lists."""
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return {
        "median": round(statistics.median(ratios), 3),
        "low": round(min(ratios), 3),
        "high": round(max(ratios), 3),
        "pairs": len(ratios),
        "seconds_ours": round(statistics.median(ours), 4),
        "seconds_theirs": round(statistics.median(theirs), 4),
    }


def report(name, result):
    """Prints one line of a result."""
    print(
        f"{name}: {result['median']:.3f} times the peer "
        f"({result['low']:.3f} to {result['high']:.3f}, "
        f"{result['pairs']} pairs; ours {result['seconds_ours']} s)"
    )


def save(name, results, packages):
    """Writes the results of a run with the machine and the versions."""
    RESULTS.mkdir(exist_ok=True)
    record = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {
            package: metadata.version(package) for package in packages
        },
        "results": results,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"kept in benchmarks/results/{path.name}")
