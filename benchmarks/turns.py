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


def in_turns(ours, theirs, pairs=PAIRS):
    """Runs two functions in turns and returns the ratios of their times.

    Each pair runs both, in changing order; both run once before, unmeasured.

    Args:
        ours: A function without arguments.
        theirs: Another one that does the same work.
        pairs: How many pairs to measure.

    Returns:
        A dict: `median`, `low` and `high` of theirs / ours (above 1: we are
        faster), and the median seconds of each.
    """
    ours(), theirs()
    times = {"ours": [], "theirs": []}
    for number in range(pairs):
        order = [("ours", ours), ("theirs", theirs)]
        for name, function in order if number % 2 else order[::-1]:
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    ratios = [
        theirs / ours
        for ours, theirs in zip(times["ours"], times["theirs"], strict=True)
    ]
    return {
        "median": round(statistics.median(ratios), 3),
        "low": round(min(ratios), 3),
        "high": round(max(ratios), 3),
        "pairs": pairs,
        "seconds_ours": round(statistics.median(times["ours"]), 4),
        "seconds_theirs": round(statistics.median(times["theirs"]), 4),
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
