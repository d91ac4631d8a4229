"""What the parts of `accelerator` share: the device, the clock, the file.

Import it before anything of Keras: it tells JAX how much memory to take.
"""

import dataclasses
import gc
import os
import platform
import threading
import time
from importlib import metadata

from benchmarks import chips
from bertbook import runtime
from bertbook.config import BertConfig
from bertbook.files import write_json

BEGAN = time.perf_counter()
# JAX takes three quarters of a GPU if it is not told before it looks.
FRACTIONS = "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"
if not any(name in os.environ for name in FRACTIONS):  # both are an error
    os.environ[FRACTIONS[1]] = "0.9"
TRIES = 3  # batch sizes of a part
RESERVE = 5  # seconds that are left for the end
PACKAGES = ("keras", "jax", "jaxlib", "numpy", "keras-hub", "tensorflow")


@dataclasses.dataclass(frozen=True)
class Part:
    """One thing to measure.

    Attributes:
        name: What the file and the table call it.
        guess: Seconds that it takes on a large GPU, most of them compiling.
        measure: A function of the `Bench` that returns a dict.
    """

    name: str
    guess: float
    measure: object


class Clock:
    """Says whether there is time for one more part.

    Args:
        minutes: The most, from the start of the process.
        began: When it started, as `time.perf_counter` has it.
    """

    def __init__(self, minutes, began):
        self.end = began + 60 * minutes - RESERVE
        self.guessed = self.taken = 0.0

    def left(self):
        """Returns the seconds that are left."""
        return self.end - time.perf_counter()

    def expected(self, guess):
        """Returns a guess, mended by how long the parts so far have taken."""
        if not self.guessed:
            return guess
        return guess * min(3.0, self.taken / self.guessed)

    def learn(self, guess, taken):
        """Takes note of how long a part has taken that was guessed."""
        self.guessed += guess
        self.taken += taken


class Bench:
    """The measurements of one run, and the file that they are kept in.

    Args:
        options: What the command line says, as `read_options` returns it.
        began: As in `Clock`.
    """

    def __init__(self, options, began=BEGAN):
        self.options = options
        self.device = device_facts()
        self.is_dry = self.device["platform"] == "cpu"
        self.dtype = self.device["dtype_16_bits"]
        self.seconds = 0.02 if self.is_dry else 3.0  # of every measurement
        self.most_rows = 2 if self.is_dry else 512
        self.tries = 1 if self.is_dry else TRIES
        self.clock = Clock(options.minutes, began)
        self.waiting = []
        self.record = {
            "device": self.device,
            "python": platform.python_version(),
            "backend": "jax",
            "versions": {name: version_of(name) for name in PACKAGES},
            "bertbook": runtime.version(),
            "minutes": options.minutes,
            "is_dry_run": self.is_dry,
            "parts": {},
        }

    @property
    def parts(self):
        """Returns what is measured so far, by the name of the part."""
        return self.record["parts"]

    def config(self, size, length=512):
        """Returns the config of a published size; of a dry run, a part."""
        dry = {"num_hidden_layers": 1, "vocab_size": 1_000}
        return BertConfig.named(
            size,
            max_position_embeddings=max(512, length),
            **(dry if self.is_dry else {}),
        )

    def take_all(self, parts):
        """Takes every part that there is time for."""
        self.waiting = list(parts)
        while self.waiting:
            self.take(self.waiting.pop(0))

    def take(self, part):
        """Takes one part and keeps its figures, or why there are none."""
        expected = self.clock.expected(part.guess)
        if expected > self.clock.left():
            found = {"status": f"no time: it may take {expected:.0f} s"}
        else:
            begun = time.perf_counter()
            found = attempt(part.measure, self)
            gc.collect()
            found["seconds"] = round(time.perf_counter() - begun, 1)
            if found["status"] == "measured":
                tries = len(found.get("tried", "1"))
                self.clock.learn(part.guess * tries, found["seconds"])
        self.parts[part.name] = found
        print(line_of(part.name, found), flush=True)
        self.write()

    def has_time(self, seconds):
        """Returns whether one more try leaves time for what is waiting."""
        waiting = sum(self.clock.expected(p.guess) for p in self.waiting)
        return self.clock.left() - waiting > seconds

    def write(self):
        """Writes the file, if there is one."""
        if self.options.out is not None:
            write_json(self.options.out, self.record)

    def speed(self, rows, seconds, flops):
        """Returns the figures of so many rows in so many seconds.

        Args:
            rows: The rows.
            seconds: What they took.
            flops: FLOPs of one row.
        """
        tflops = rows * flops / seconds / 1e12
        peak = self.device["peak_tflops"]
        return {
            "rows_per_second": round(rows / seconds, 1),
            "tflops": float(f"{tflops:.4g}"),
            "share_of_peak": None if peak is None else round(tflops / peak, 4),
        }


def attempt(measure, bench):
    """Returns what a function measures, or what stopped it, as text."""
    try:
        with MemoryWatch() as watch:
            found = measure(bench)
    except Exception as error:
        return {"status": "failed", "error": text_of(error)}
    return {"status": "measured", **found, "memory": watch.result}


def text_of(error):
    """Returns the kind and the first lines of an error."""
    return f"{type(error).__name__}: {str(error).strip()[:1_500]}"


class MemoryWatch:
    """Looks at the memory of the device while the body of a `with` runs.

    JAX keeps the peak of the whole process. Where the body does not raise it,
    what is in use is read twenty times a second.
    """

    def __enter__(self):
        self.result = None
        self.most = 0
        self.ended = threading.Event()
        self.before = memory_stats()
        self.thread = threading.Thread(target=self._look, daemon=True)
        if self.before:
            self.thread.start()
        return self

    def _look(self):
        while not self.ended.wait(0.05):
            self.most = max(self.most, memory_stats()["bytes_in_use"])

    def __exit__(self, *_):
        self.ended.set()
        if not self.before:
            return
        self.thread.join()
        peak = memory_stats()["peak_bytes_in_use"]
        is_new = peak > self.before["peak_bytes_in_use"]
        self.result = {
            "bytes_before": self.before["bytes_in_use"],
            "peak_bytes": peak if is_new else self.most,
            "peak_by": "JAX" if is_new else "looking every 50 ms",
        }


def memory_stats():
    """Returns what JAX says of the memory of its first device, or {}."""
    import jax

    return jax.devices()[0].memory_stats() or {}


def device_facts():
    """Returns the name of the device, its memory and its peak."""
    import jax

    device = jax.devices()[0]
    is_old = device.platform == "gpu" and float(device.compute_capability) < 8
    peak = chips.peak_of(device.device_kind)
    return {
        "kind": device.device_kind,
        "platform": device.platform,
        "memory_bytes": memory_stats().get("bytes_limit"),
        "memory_fraction": [os.environ.get(name) for name in FRACTIONS],
        "matmul_precision": str(jax.config.jax_default_matmul_precision),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "dtype_16_bits": "mixed_float16" if is_old else "mixed_bfloat16",
        "peak_tflops": peak,
    }


def version_of(package):
    """Returns the version of a package, "not installed" without one."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def line_of(name, found):
    """Returns a line of the table."""
    if found["status"] != "measured":
        why = found.get("error", found["status"]).splitlines()[0]
        return f"{name:<30} {why:.90}"
    facts = []
    if "rows_per_second" in found:
        facts.append(f"{found['rows_per_second']:>10,.1f} rows/s")
    if found.get("share_of_peak") is not None:
        facts.append(f"{found['share_of_peak']:.1%} of the peak")
    if "step_alone" in found:
        alone = found["step_alone"]["rows_per_second"]
        facts.append(f"{found['rows']} rows, step alone {alone:,.1f} rows/s")
    facts += [f"{found[key]} {words}" for key, words in MORE if key in found]
    if "one_row_milliseconds" in found:
        one = found["one_row_milliseconds"]["median"]
        facts.append(f"one row {one} ms")
    for path, result in found.get("median_time_over_einsum", {}).items():
        facts.append(f"{path}: {result['median']}")
    if "ratio" in found:
        facts.append(f"the peer takes {found['ratio']['median']} times as long")
    facts.append(f"{found['seconds']} s in all")
    return f"{name:<30} " + ", ".join(facts)


MORE = (
    ("times_as_fast_in_16_bits", "times as fast in 16 bits"),
    ("sst2_epoch_seconds_by_arithmetic", "s an epoch of SST-2 by arithmetic"),
)
