"""The backend, the device, precision, compilation, quiet imports and seeds.

Every module with a layer in it takes `keras` and `ops` from here, so that the
backend is chosen, and its start-up log held back, whoever imports first.
"""

import functools
import importlib.util
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

TITLES = {"tensorflow": "TensorFlow", "jax": "JAX"}
BACKENDS = tuple(TITLES)
COMPILE = True  # with XLA; JAX always does
COMPILATIONS = ("xla", "islands")
# Instructions that multiply bfloat16 faster than float32: their name, Linux's
# flag, on whose processors, and what names the sets of oneDNN that have them.
INTEL, AMD = "GenuineIntel", "AuthenticAMD"
FAST_PRODUCTS = (
    ("AMX", "amx_bf16", (INTEL, AMD), ("AMX",)),
    ("AVX512-BF16", "avx512_bf16", (AMD,), ("BF16", "FP16", "AVX10", "AMX")),
)
NO_LIMIT = ("ALL", "DEFAULT")
FLOAT16_ALONE = (
    "this GPU multiplies fast in float16, not in bfloat16; mixed_float16 is "
    "for you to choose"
)
NO_FAST_PRODUCTS = (
    "this processor multiplies no faster in bfloat16: neither AMX nor, on "
    "AMD's, AVX512-BF16"
)
FIRST_BFLOAT16_GPU = (8, 0)  # compute capability of the A100
FIRST_FLOAT16_GPU = (7, 0)  # of the V100; the T4 has 7.5
TPU = (99,)  # stands for a compute capability, which TPUs have not
# A line of a package's list of what it needs, and parts of it.
REQUIREMENT = re.compile(
    r"""(?P<name>[\w.-]+)\s*(?P<versions>[^;\[]*?)"""
    r"""(?:\s*;\s*extra == ["'](?P<extra>[\w-]+)["'])?"""
)
LEAST = re.compile(r">=\s*([0-9.]+)")
NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_forks: list[int] = []  # processes between the one that loaded Keras and this

# One thread at a time chooses the backend, imports it and holds back file
# descriptor 2. What runs under the lock imports Keras and its backend, never a
# module of bertbook: a thread that imports one of those may wait for the lock.
_LOCK = threading.RLock()


def __getattr__(name):
    """Returns `keras` or `ops`, imported on first use."""
    if name == "keras":
        return load_keras()
    if name == "ops":
        return load_keras().ops
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")


def setup(seed: int = 0) -> None:
    """Picks the backend, hushes its logs, sets the seed and says what runs.

    Call it in the first cell, before anything imports Keras. The environment
    variable KERAS_BACKEND wins. Without it JAX is taken where a TPU runtime is
    installed, then TensorFlow, then JAX. It prints two lines; `bertbook info`
    and `describe` have the rest.

    Args:
        seed: Seed of Python, NumPy and the backend.

    Raises:
        ImportError: Neither TensorFlow nor JAX is installed, or a package is
            missing or too old; the message says what to install.
        ValueError: KERAS_BACKEND names another backend, or JAX_PLATFORMS a
            platform that is not here.

    >>> import bertbook as bb
    >>> bb.setup(seed=7)
    bertbook ..., Keras ... on ...
    Device: ...
    """
    check_versions(needed_packages(choose_backend()))
    keras = load_keras()
    keras.utils.set_random_seed(seed)
    facts = describe()
    backend = f"{TITLES[facts['backend']]} {facts['backend_version']}"
    print(f"bertbook {facts['bertbook']}, Keras {facts['keras']} on {backend}")
    device = facts["device"]
    if device == "CPU":
        device += f", {core_count()} core{'s' * (core_count() > 1)}"
    print(f"Device: {device}")


def needed_packages(backend: str) -> dict[str, str]:
    """Returns what bertbook asks of each package, such as ">=2,<3".

    Args:
        backend: The backend, which is asked for beside what is always needed.

    >>> needed_packages("jax")["numpy"]
    '>=2.0'
    """
    try:
        lines = metadata.requires("bertbook") or []
    except metadata.PackageNotFoundError:  # a bare folder
        return {"numpy": ">=2.0"}
    needed = {}
    for line in lines:
        found = REQUIREMENT.fullmatch(line)
        if found and found["extra"] in (None, backend):
            needed[found["name"]] = found["versions"]
    return needed


def check_versions(needed: Mapping[str, str]) -> None:
    """Refuses packages that are missing or too old.

    pip sees to that, but not where it was told `--no-deps`, as on Colab.

    Args:
        needed: As `needed_packages` returns it. Of the versions the least one
            counts: a newer one than those that were tried may do.

    Raises:
        ImportError: A package is missing or too old; the message says what to
            install.
    """
    wrong = []
    for name, versions in needed.items():
        least = LEAST.search(versions)
        try:
            here = metadata.version(name)
        except metadata.PackageNotFoundError:
            if not _is_installed(name):  # as `tensorflow-cpu` installs it
                wrong.append((f"{name} is missing", f"{name}{versions}"))
            continue
        if least and _numbers(here) < _numbers(least[1]):
            said = f"{name} is {here}, and must be {least[1]} or newer"
            wrong.append((said, f"{name}{versions}"))
    if wrong:
        packages = " ".join(f"'{line}'" for _, line in wrong)
        raise ImportError(
            f"bertbook needs other packages: {'; '.join(s for s, _ in wrong)}. "
            f"Run `pip install {packages}` (in a notebook `%pip`), then start "
            "Python again (in Colab *Runtime*, *Restart session*)."
        )


def _numbers(version: str) -> list[int]:
    """Returns the numbers that a version begins with."""
    numbers = NUMBERS.match(version)
    return [int(part) for part in numbers[0].split(".")] if numbers else []


def choose_backend() -> str:
    """Returns the backend that `load_keras` takes, without importing it.

    Raises:
        ImportError: Neither TensorFlow nor JAX is installed.
        ValueError: KERAS_BACKEND names another backend.
    """
    backend = os.environ.get("KERAS_BACKEND")
    if "keras" in sys.modules:
        import keras  # waits where another thread is half through it

        backend = keras.backend.backend()
    if backend:
        if backend not in BACKENDS:
            raise ValueError(
                f"`KERAS_BACKEND` must be one of {', '.join(BACKENDS)}. "
                f"Received: {backend!r}."
            )
        return backend
    installed = [name for name in BACKENDS if _is_installed(name)]
    if not installed:
        raise ImportError(
            "bertbook needs a backend. Install one of them: "
            "`pip install tensorflow` or `pip install jax`."
        )
    if "jax" in installed and _is_installed("libtpu"):
        return "jax"
    return installed[0]


def load_keras():
    """Imports Keras on the chosen backend without its start-up log lines.

    Threads may call it at the same time: one imports, the others wait.

    Returns:
        The module `keras`.

    Raises:
        ImportError: No backend is installed.
        ValueError: Keras was imported with another backend, or JAX_PLATFORMS
            names a platform that is not here.
    """
    with _LOCK:
        backend = choose_backend()
        _notice_forks()
        if "keras" in sys.modules:
            import keras  # no name of it is read before it is whole
        else:
            keras = _import_quietly(backend)
        if backend == "tensorflow":
            end_data_sets_at_once()
            logging.getLogger("tensorflow").addFilter(_is_no_retracing)
    return keras


def _is_no_retracing(record: logging.LogRecord) -> bool:
    """Returns False for a warning that several models of a process bring.

    Each model traces its step once. TensorFlow takes the steps of all for one
    function of Keras, and from the fifth on warns that it is traced too often.
    """
    said = record.getMessage()
    return not ("TensorFlowTrainer." in said and "retracing" in said)


def _import_quietly(backend: str):
    """Imports Keras on a backend and wakes the device, without their logs."""
    os.environ["KERAS_BACKEND"] = backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with quiet_stderr():
        error = _platform_error() if backend == "jax" else None
        if error is None:  # raised in here, it would bring the log along
            import keras

            _wake_device()
    if error is not None:
        raise error
    return keras


def refuse_forked_process() -> None:
    """Refuses to compute where the threads of the backend are missing.

    A forked process holds none of the threads of its parent, and a computation
    would wait for them without end.

    Raises:
        RuntimeError: This process was forked after the backend was loaded.
    """
    if _forks:
        raise RuntimeError(
            "A model cannot compute in a process that was forked after the "
            "backend was loaded: its threads stayed in the parent. Start the "
            'process with `multiprocessing.get_context("spawn")`, or fork '
            "before anything of Keras is imported."
        )


@functools.cache
def _notice_forks() -> None:
    """Lets a child know that it was forked; Windows never forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forks.append(os.getpid()))


@functools.cache
def end_data_sets_at_once() -> None:
    """Spares `fit`, `evaluate` and `predict` a wait of up to a minute.

    Keras on TensorFlow makes a `tf.data.Dataset` of arrays and generators; it
    gets `without_tuning`, in every model of this process. A data set that you
    pass yourself stays as it is. Keras has no public place for this; a version
    of it that is built otherwise waits as before.
    """
    import tensorflow as tf

    try:
        from keras.src.backend.tensorflow.trainer import TFEpochIterator
        from keras.src.trainers.data_adapters import TFDatasetAdapter

        get_iterator = TFEpochIterator._get_iterator
    except (ImportError, AttributeError):
        return

    def get_untuned(self):
        data = get_iterator(self)
        is_passed = isinstance(self.data_adapter, TFDatasetAdapter)
        if is_passed or not isinstance(data, tf.data.Dataset):
            return data
        return without_tuning(data)

    TFEpochIterator._get_iterator = get_untuned


def without_tuning(data: Any) -> Any:
    """Returns a `tf.data.Dataset` that TensorFlow does not tune while it runs.

    When an iterator goes, at the end of an epoch, TensorFlow 2.21 waits for the
    thread that tunes it. That thread sleeps for as long again as the iterator
    has lived, a minute at most. Slicing arrays and asking a generator leave
    nothing to tune.
    """
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Holds back what C++ code writes to file descriptor 2.

    The log lines of TensorFlow and XLA carry clock times and process numbers,
    and no setting silences them. If the body raises, they are written after
    all. The descriptor belongs to the whole process, so another thread waits
    until the body ends. A program without standard error has nothing to hold.
    """
    with _LOCK:
        try:
            saved = os.dup(2)
        except OSError:  # closed, as a service closes it
            yield
            return
        with _held_back(saved):
            yield


@contextmanager
def _held_back(saved: int) -> Iterator[None]:
    """Sends descriptor 2 to a file, and back to `saved`, which is closed."""
    if sys.stderr is not None:
        sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(saved, 2)
            held.seek(0)
            if sys.stderr is not None:
                sys.stderr.write(held.read().decode(errors="replace"))
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def describe() -> dict[str, str]:
    """Returns what runs here, as strings.

    Returns:
        The versions, the backend and the device; `dtype_auto`, the type of
        numbers that `dtype="auto"` stands for, and why; `compilation`, what
        compiles a model of that type, and why.
    """
    keras = load_keras()
    backend = keras.backend.backend()
    dtype = choose_dtype()
    computed = keras.DTypePolicy(dtype.path).compute_dtype
    return {
        "bertbook": version(),
        "keras": keras.__version__,
        "backend": backend,
        "backend_version": metadata.version(backend),
        "device": device_name(),
        "dtype_auto": "{}, {}".format(*dtype),
        "compilation": "{}, {}".format(*choose_compilation(computed)),
    }


def version() -> str:
    """Returns the version of bertbook, "not installed" from a bare folder."""
    try:
        return metadata.version("bertbook")
    except metadata.PackageNotFoundError:
        return "not installed"


def core_count() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def device_name() -> str:
    """Returns the kind of the device that computes, such as "CPU"."""
    if load_keras().backend.backend() == "jax":
        device = first_jax_device()
        return device.platform.upper() + _kind(device.device_kind)
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        return "CPU"
    details = tf.config.experimental.get_device_details(devices[0])
    return "GPU" + _kind(details.get("device_name", ""))


def first_jax_device() -> Any:
    """Returns the device that JAX computes on.

    Raises:
        ValueError: JAX_PLATFORMS names a platform that is not here.
    """
    import jax

    error = _platform_error()
    if error is not None:
        raise error
    return jax.devices()[0]


def _platform_error() -> ValueError | None:
    """Returns what to raise where JAX_PLATFORMS names what is not here."""
    import jax

    platforms = os.environ.get("JAX_PLATFORMS")
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # without text for "cuda"
        if not platforms:
            raise
        reason = " ".join(str(error).split())
        return ValueError(
            "`JAX_PLATFORMS` must name a platform that JAX finds here, or be "
            f"left out. Received: {platforms!r}"
            + (f"; JAX says: {reason}." if reason else ".")
        )
    return None


def is_concrete(tensor) -> bool:
    """Returns whether a tensor is neither symbolic nor a tracer.

    It is False inside a compiled function, where only shapes are known.
    """
    keras = load_keras()
    if isinstance(tensor, keras.KerasTensor):
        return False
    if keras.backend.backend() == "jax":
        import jax

        return not isinstance(tensor, jax.core.Tracer)
    import tensorflow as tf

    return not tf.is_tensor(tensor) or hasattr(tensor, "numpy")


class Choice(NamedTuple):
    """What was chosen for this machine, and why."""

    path: str
    why: str


def choose_compilation(dtype: str) -> Choice:
    """Returns how a model of some number type is compiled here, and why.

    The environment variable BERTBOOK_COMPILATION names one of them, "islands"
    for any processor too; without it, or where it says "auto", the
    processor and the backend decide.

    Args:
        dtype: The type that the model computes in, such as "float32".

    Returns:
        "xla": XLA compiles all. "islands": TensorFlow's oneDNN kernels
        multiply, XLA compiles what is between the products; see `islands`.

    Raises:
        ValueError: BERTBOOK_COMPILATION is another word.
    """
    setting = os.environ.get("BERTBOOK_COMPILATION", "auto")
    if setting not in ("auto", *COMPILATIONS):
        raise ValueError(
            '`BERTBOOK_COMPILATION` must be "auto", "xla" or "islands". '
            f"Received: {setting!r}."
        )
    if setting == "xla":
        return Choice("xla", "asked for by BERTBOOK_COMPILATION")
    obstacle = _what_hinders_islands(dtype)
    if obstacle is None:
        name = _fast_instructions()
        return Choice("islands", f"this processor multiplies with {name}")
    if setting == "islands" and obstacle == NO_FAST_PRODUCTS:
        return Choice("islands", "asked for by BERTBOOK_COMPILATION")
    return Choice("xla", obstacle)


def _what_hinders_islands(dtype: str) -> str | None:
    """Returns why XLA is the better choice, or None where it is not."""
    if load_keras().backend.backend() == "jax":
        return (
            "JAX compiles everything with XLA, on a CPU no faster in bfloat16"
        )
    if dtype != "bfloat16":
        return f"islands are for bfloat16, and this is {dtype}"
    if device_name() != "CPU":
        return "islands are for processors, and this is another device"
    return None if _fast_instructions() else NO_FAST_PRODUCTS


def _fast_instructions() -> str | None:
    """Returns what oneDNN multiplies bfloat16 with, where it is faster.

    AMX is several times as fast as float32. AVX512-BF16 is faster than float32
    on AMD's processors and slower on Intel's.
    ONEDNN_MAX_CPU_ISA may name a smaller set of instructions, and
    TF_ENABLE_ONEDNN_OPTS=0 turns oneDNN off.
    """
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1") == "0":
        return None
    names = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
    limit = next((os.environ[n] for n in names if os.environ.get(n)), "ALL")
    vendor, flags = _processor()
    for name, flag, vendors, sets in FAST_PRODUCTS:
        is_allowed = any(part in limit.upper() for part in (*sets, *NO_LIMIT))
        if is_allowed and flag in flags and vendor in vendors:
            return name
    return None


@functools.cache
def _processor() -> tuple[str, frozenset[str]]:
    """Returns a processor's vendor and what it can do, as Linux names them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "", frozenset()
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields.get("vendor_id", ""), frozenset(
        fields.get("flags", "").split()
    )


def choose_dtype() -> Choice:
    """Returns the type of numbers that `dtype="auto"` stands for, and why.

    It is never float16, which overflows above 65,504 where float32 does not,
    and in which a training loop must scale its loss.

    Returns:
        "mixed_bfloat16", weights in float32 and computing in bfloat16, where
        that is faster; else "float32".
    """
    compilation = choose_compilation("bfloat16")
    if compilation.path == "islands":
        return Choice("mixed_bfloat16", compilation.why)
    capability = _accelerator()
    if capability is None:
        return Choice("float32", f"with XLA: {compilation.why}")
    if capability >= FIRST_BFLOAT16_GPU:
        return Choice("mixed_bfloat16", "this device multiplies in bfloat16")
    if capability >= FIRST_FLOAT16_GPU:
        return Choice("float32", FLOAT16_ALONE)
    return Choice("float32", "this device does not multiply in bfloat16")


def default_dtype() -> Choice:
    """Returns the type of numbers of a run that names none, and why.

    Returns:
        "mixed_bfloat16" on a TPU, else "float32".
    """
    if _accelerator() == TPU:
        return Choice("mixed_bfloat16", "this is a TPU, made for bfloat16")
    return Choice("float32", "the default")


def _accelerator() -> tuple[int, ...] | None:
    """Returns the compute capability of the GPU, `TPU`, or None."""
    if load_keras().backend.backend() == "jax":
        device = first_jax_device()
        if device.platform == "tpu":
            return TPU
        if device.platform != "gpu":
            return None
        return tuple(map(int, str(device.compute_capability).split(".")))
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        return None
    details = tf.config.experimental.get_device_details(devices[0])
    return tuple(details.get("compute_capability", (0, 0)))


def compiles_whole(dtype: str, with_xla: bool = True) -> bool:
    """Returns what to tell Keras of a model: whether XLA compiles all of it.

    Args:
        dtype: The type that the model computes in.
        with_xla: Whether it is worth the time that XLA takes to compile; JAX
            without XLA would not be compiled at all.
    """
    if load_keras().backend.backend() == "jax":
        return True
    return with_xla and choose_compilation(dtype).path == "xla"


def compiles_shapes(model: Any) -> bool:
    """Returns whether a model is compiled anew for each shape of a batch.

    Args:
        model: A Keras model, compiled for training or not; what is none is
            taken for one that is.
    """
    is_compiled = getattr(model, "jit_compile", True)
    if load_keras().backend.backend() == "jax" or is_compiled:
        return True
    return choose_compilation(model.compute_dtype).path == "islands"


def may_compile(with_xla: bool) -> bool:
    """Returns what to tell Keras: JAX without XLA is not compiled at all."""
    return with_xla or load_keras().backend.backend() == "jax"


@contextmanager
def uncompiled() -> Iterator[None]:
    """Computes one operation after the other in the body, where that is quick.

    To compile a model takes longer than to compute one row, or a few small
    steps, without. JAX would compile every operation alone, so it goes on
    compiling the whole.
    """
    if load_keras().backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def compile_with(model, function):
    """Compiles a function that uses a model's weights, whatever they are then.

    It is compiled with XLA; on TensorFlow unless `COMPILE` is False.

    Args:
        model: A Keras model, built.
        function: Takes and returns tensors, in lists and dicts as it likes.

    Returns:
        A function of the same arguments. It is compiled anew for arguments of
        other shapes, and not when the weights change.
    """
    keras = load_keras()
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # No line of it branches by the value of a tensor, so that rewriting
        # it, which `autograph` does, would take time and change nothing.
        dtype = getattr(model, "compute_dtype", "float32")
        with_xla = compiles_whole(dtype, COMPILE)
        graphs = tf.function(function, jit_compile=with_xla, autograph=False)

        def run_graph(*arguments):
            arguments = keras.tree.map_structure(
                tf.convert_to_tensor, arguments
            )
            # Calling `graphs` directly warns after six shapes.
            return graphs.get_concrete_function(*arguments)(*arguments)

        return run_graph
    import jax

    @jax.jit
    def of_values(values, *arguments):
        pairs = list(zip(model.variables, values, strict=True))
        with keras.StatelessScope(state_mapping=pairs):
            return function(*arguments)

    def run(*arguments):
        values = [variable.value for variable in model.variables]
        return of_values(values, *arguments)

    return run


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _kind(name: str) -> str:
    return f" ({name})" if name and name.lower() != "cpu" else ""


def _wake_device() -> None:
    """Lists the devices and compiles one trivial function.

    Both write their first log lines here, inside the guard, and not into a
    reader's notebook later.
    """
    if os.environ["KERAS_BACKEND"] == "jax":
        import jax

        jax.jit(lambda x: x + 1)(0)
        return
    import tensorflow as tf

    tf.config.list_physical_devices()
    tf.function(lambda x: x + 1, jit_compile=True)(tf.constant(0))
