"""The backend, the device, quiet imports and seeds."""

import logging
import os
import re
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bertbook import runtime
from bertbook.runtime import (
    BACKENDS,
    choose_backend,
    compile_with,
    describe,
    device_name,
    is_concrete,
    load_keras,
    quiet_stderr,
)


@pytest.fixture
def fresh(monkeypatch):
    """A Python that has not imported Keras yet and is told no backend."""
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    return monkeypatch


def install(monkeypatch, *names):
    monkeypatch.setattr(runtime, "_is_installed", names.__contains__)


# Definition.


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        (["tensorflow"], "tensorflow"),
        (["jax"], "jax"),
        (["jax", "tensorflow"], "tensorflow"),
        (["jax", "tensorflow", "libtpu"], "jax"),
        (["tensorflow", "libtpu"], "tensorflow"),
    ],
)
def test_choice_of_the_backend(installed, expected, fresh):
    install(fresh, *installed)
    assert choose_backend() == expected


def test_the_needed_packages_are_those_of_the_list():
    needed = runtime.needed_packages("jax")
    assert {"keras", "numpy", "safetensors", "tokenizers", "jax"} <= set(needed)
    assert "tensorflow" not in needed
    assert needed["jax"] == ">=0.7"
    runtime.check_versions(runtime.needed_packages(choose_backend()))


def test_what_is_missing_or_too_old_is_told_with_its_remedy(monkeypatch):
    versions = {"keras": "3.9.2", "numpy": "2.10.0rc1", "jax": "0.7.1"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    install(monkeypatch, "keras", "tensorflow")
    runtime.check_versions({"tensorflow": ">=2.20"})  # under another name
    runtime.check_versions({"numpy": ">=2.9", "jax": ">=0.7"})
    needed = {"keras": "<4,>=3.13", "pooch": ">=1.8", "numpy": ">=2.0"}
    with pytest.raises(ImportError) as error:
        runtime.check_versions(needed)
    assert str(error.value) == (
        "bertbook needs other packages: keras is 3.9.2, and must be 3.13 or "
        "newer; pooch is missing. Run `pip install 'keras<4,>=3.13' "
        "'pooch>=1.8'` (in a notebook `%pip`), then start Python again (in "
        "Colab *Runtime*, *Restart session*)."
    )


def test_the_environment_variable_wins(fresh):
    install(fresh, "jax", "tensorflow")
    for name in BACKENDS:
        fresh.setenv("KERAS_BACKEND", name)
        assert choose_backend() == name
    fresh.setenv("KERAS_BACKEND", "")
    assert choose_backend() == "tensorflow"


def imported_keras(backend):
    return SimpleNamespace(backend=SimpleNamespace(backend=lambda: backend))


def test_a_keras_that_is_imported_wins(fresh):
    fresh.setenv("KERAS_BACKEND", "tensorflow")
    fresh.setitem(sys.modules, "keras", imported_keras("jax"))
    assert choose_backend() == "jax"
    assert load_keras() is sys.modules["keras"]


SETUP = """
import random, sys
import numpy as np
import bertbook as bb

for seed in (3, 3, 5):
    bb.setup(seed)
    from bertbook.runtime import keras

    print(random.random(), np.random.rand(), float(keras.random.normal(())))

import bertbook.pretraining.pretrain
bb.BertEncoder, bb.BertForMaskedLM, bb.BertForPreTraining, bb.attention_path
bb.BertForQuestionAnswering, bb.BertForTokenClassification, bb.evaluate
bb.BertForSequenceClassification, bb.BertForMultipleChoice, bb.finetune
bb.Tokenizer, bb.fill_mask, bb.load_dataset
config = bb.BertConfig.named("tiny", vocab_size=11)
bb.BertForPreTraining(config)({"input_ids": [[5, 6]]})
print(sorted(n for n in sys.modules if n.startswith("bertbook.")))
from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.seq2seq import Seq2SeqTransformer
print(bb.CausalLM is CausalLM, bb.Seq2SeqTransformer is Seq2SeqTransformer)
print(bb.generate.__module__)
"""


@pytest.fixture(scope="module")
def said():
    """The lines that a new process prints."""
    finished = subprocess.run(
        [sys.executable, "-c", SETUP], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout.splitlines()


def test_setup_prints_the_facts_sets_the_seed_and_is_quiet(said):
    facts = describe()
    backend = {"tensorflow": "TensorFlow", "jax": "JAX"}[facts["backend"]]
    assert said[0] == (
        f"bertbook {metadata.version('bertbook')}, Keras {facts['keras']} "
        f"on {backend} {metadata.version(facts['backend'])}"
    )
    assert re.fullmatch(r"Device: CPU, (1 core|\d+ cores)", said[1])
    first, again, other = (said[number].split() for number in (2, 5, 8))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_the_bert_models_import_nothing_of_the_decoder(said):
    imported, *rest = said[9:]
    assert "bertbook.model.encoder" in imported
    assert "bertbook.decoder" not in imported
    assert rest == ["True True", "bertbook.decoder.generate"]


def test_what_is_described():
    facts = describe()
    assert list(facts) == [
        "bertbook",
        "keras",
        "backend",
        "backend_version",
        "device",
        "dtype_auto",
        "compilation",
    ]
    assert facts["backend"] in BACKENDS
    assert facts["device"] == device_name()
    assert device_name().split()[0] in ("CPU", "GPU", "TPU")


def test_keras_and_ops_are_given_when_asked_for():
    import keras

    assert runtime.keras is load_keras() is keras
    assert runtime.ops is keras.ops
    with pytest.raises(AttributeError, match="no attribute 'torch'"):
        _ = runtime.torch


# Property.


def test_stderr_is_held_back(capfd):
    with quiet_stderr():
        os.write(2, b"a log line of C++\n")
        subprocess.run(
            [sys.executable, "-c", "import sys; sys.stderr.write('child')"],
            check=True,
        )
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_stderr_is_written_after_all_when_the_body_raises(capfd):
    def fail():
        os.write(2, b"why it failed \xff\n")
        raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"), quiet_stderr():
        fail()
    assert "why it failed" in capfd.readouterr().err


def test_one_guard_inside_another(capfd):
    with quiet_stderr():
        os.write(2, b"outer\n")
        with quiet_stderr():
            os.write(2, b"inner\n")
        os.write(2, b"outer again\n")
    assert capfd.readouterr().err == ""


def test_a_guard_leaves_no_file_open():
    before = os.dup(2)
    os.close(before)
    for _ in range(5):
        with quiet_stderr():
            pass
    after = os.dup(2)
    os.close(after)
    assert after == before


def test_is_concrete():
    keras = load_keras()
    values = np.ones((2, 3), "float32")
    assert is_concrete(values)
    assert is_concrete(keras.ops.convert_to_tensor(values))
    assert is_concrete(keras.Variable(values))
    assert not is_concrete(keras.KerasTensor((2, 3)))
    seen = []

    def compiled(x):
        seen.append(is_concrete(x))
        return x + 1

    if keras.backend.backend() == "jax":
        import jax

        jax.jit(compiled)(values)
    else:
        import tensorflow as tf

        tf.function(compiled)(tf.constant(values))
    assert seen == [False]


# Error.


def test_no_backend_at_all(fresh):
    install(fresh)
    with pytest.raises(ImportError) as caught:
        choose_backend()
    assert "`pip install tensorflow`" in str(caught.value)
    assert "`pip install jax`" in str(caught.value)


@pytest.mark.parametrize("name", ["torch", "TensorFlow", "numpy"])
def test_another_backend(name, fresh):
    fresh.setenv("KERAS_BACKEND", name)
    with pytest.raises(ValueError, match="one of tensorflow, jax") as caught:
        choose_backend()
    assert str(caught.value).endswith(f"Received: {name!r}.")
    fresh.setitem(sys.modules, "keras", imported_keras(name))
    with pytest.raises(ValueError, match="one of tensorflow, jax"):
        load_keras()


def test_a_compiled_function_sees_new_weights_and_is_traced_once_a_shape():
    keras = load_keras()
    layer = keras.layers.Dense(3, kernel_initializer="ones")
    layer.build((None, 2))
    traced = []

    def double(batch, more):
        traced.append(batch["x"].shape)
        return {"y": 2 * layer(batch["x"]) + more[0]}

    run = compile_with(layer, double)
    x, one = np.ones((4, 2), "float32"), np.float32(1)
    for weight, expected in ((1.0, 5.0), (2.0, 9.0)):
        layer.kernel.assign(np.full((2, 3), weight))
        outputs = run({"x": x}, [one])
        np.testing.assert_array_equal(outputs["y"], np.full((4, 3), expected))
    for rows in range(1, 9):
        run({"x": x[:1].repeat(rows, axis=0)}, [one])
    assert [tuple(shape) for shape in traced] == [
        (rows, 2) for rows in (4, 1, 2, 3, 5, 6, 7, 8)
    ]


def test_many_shapes_give_no_warning(capfd):
    keras = load_keras()
    layer = keras.layers.Dense(1)
    layer.build((None, 1))
    run = compile_with(layer, lambda x: layer(x))
    for rows in range(1, 9):
        run(np.ones((rows, 1), "float32"))
    assert "retracing" not in capfd.readouterr().err


def test_jax_is_always_compiled():
    on_jax = runtime.keras.backend.backend() == "jax"
    assert runtime.may_compile(True)
    assert runtime.may_compile(False) == on_jax


def test_data_sets_that_keras_makes_are_not_tuned_and_those_of_users_are():
    if load_keras().backend.backend() != "tensorflow":
        pytest.skip("tf.data is TensorFlow's")
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import TFEpochIterator

    def batches():
        while True:
            yield np.zeros((2, 3)), np.zeros((2, 1))

    def is_tuned(x, **options):
        strategy = tf.distribute.get_strategy()
        iterator = TFEpochIterator(x=x, distribute_strategy=strategy, **options)
        return iterator._get_iterator().options().autotune.enabled is not False

    assert not is_tuned(np.zeros((4, 3)), batch_size=2)
    assert not is_tuned(batches(), steps_per_epoch=2)
    assert is_tuned(tf.data.Dataset.from_tensors(np.zeros((4, 3))))


def test_a_keras_that_is_built_otherwise_is_left_as_it_is(monkeypatch):
    if load_keras().backend.backend() != "tensorflow":
        pytest.skip("tf.data is TensorFlow's")
    name = "keras.src.backend.tensorflow.trainer"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    assert runtime.end_data_sets_at_once.__wrapped__() is None


THREADS = """
import sys, threading
import bertbook as bb

names = [
    "BertEncoder", "BertForMaskedLM", "finetune", "generate", "fill_mask",
    "Tokenizer", "runtime.ops", "import keras",
]
errors, together = [], threading.Barrier(len(names))

def touch(name):
    together.wait()
    try:
        if name == "import keras":
            import keras
        else:
            value = bb
            for part in name.split("."):
                value = getattr(value, part)
    except BaseException as error:
        errors.append(f"{name}: {error!r}")

threads = [threading.Thread(target=touch, args=(n,)) for n in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""


def race():
    """Lets threads of a fresh process touch lazy names for the first time."""
    finished = subprocess.run(
        [sys.executable, "-c", THREADS],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.stdout == "[]\n", finished.stdout + finished.stderr


@pytest.mark.any_backend
def test_threads_that_touch_lazy_names_at_once_all_get_them():
    race()


@pytest.mark.slow
def test_threads_touch_lazy_names_at_once_twenty_times():
    for _ in range(20):
        race()


SLOW_KERAS = """
import time
time.sleep(0.3)
class backend:
    backend = staticmethod(lambda: "jax")
"""
WAIT = """
import sys, threading
from bertbook.runtime import choose_backend

thread = threading.Thread(target=lambda: __import__("keras"))
thread.start()
while "keras" not in sys.modules:
    pass
print(choose_backend())
"""


def test_a_thread_waits_until_another_has_imported_keras(tmp_path):
    (tmp_path / "keras.py").write_text(SLOW_KERAS)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    finished = subprocess.run(
        [sys.executable, "-c", WAIT],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
        timeout=60,
    )
    assert finished.stdout == "jax\n", finished.stderr


def test_standard_error_that_is_closed_holds_nothing_back():
    code = "import os, sys; os.close(2); sys.stderr = None\n"
    code += "from bertbook.runtime import quiet_stderr\n"
    code += "with quiet_stderr(): print('ran')"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert finished.stdout == "ran\n"


def test_threads_that_hold_back_standard_error_leave_it_as_it_was(capfd):
    def hold():
        with quiet_stderr():
            time.sleep(0.05)

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for number, thread in enumerate(threads):
        thread.start()
        time.sleep(0.02 * number)
    for thread in threads:
        thread.join()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_several_models_of_a_process_are_no_warning(caplog):
    """Each traces its step once: that is no retracing."""
    keras = load_keras()
    if keras.backend.backend() != "tensorflow":
        pytest.skip("needs TensorFlow")
    logging.getLogger("tensorflow").addHandler(caplog.handler)
    for _ in range(6):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(np.ones((2, 3)), np.ones((2, 1)), verbose=0)
    import tensorflow as tf

    for number in range(6):  # a function of a user's own still brings one
        tf.function(lambda x: x + 1)(tf.zeros(number))
    logging.getLogger("tensorflow").removeHandler(caplog.handler)
    assert "TensorFlowTrainer" not in caplog.text
    assert "<lambda>" in caplog.text
