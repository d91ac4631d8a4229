"""What the package chooses for each kind of device, without one of them.

A stand-in takes the place of `jax.devices()[0]`. It says that it is a TPU or a
GPU, and computes as the processor that it is.
"""

import warnings

import numpy as np
import pytest

import bertbook as bb
from bertbook import runtime
from bertbook.batches.batching import bucketed
from bertbook.cli.main import main
from bertbook.devices.sharing import Share
from bertbook.model import attention
from bertbook.model.attention import choose_path, find_fused_fault
from bertbook.pretraining import pretrain as pretraining
from bertbook.pretraining.pretrain import PretrainingRecipe
from bertbook.runtime import choose_backend, ops
from tests.helpers.toys import make, toy_config

pytestmark = pytest.mark.skipif(
    choose_backend() != "jax", reason="TPUs and fused attention are JAX's"
)


class Device:
    """The processor under the name of another device."""

    def __init__(self, real, **named):
        self.real = real
        self.__dict__.update(named)

    def __getattr__(self, name):
        return getattr(self.real, name)


def name_device(monkeypatch, **named):
    import jax

    device = Device(jax.devices()[0], **named)
    monkeypatch.setattr(jax, "devices", lambda *_: [device])


@pytest.fixture
def tpu(monkeypatch):
    name_device(monkeypatch, platform="tpu", device_kind="TPU v5 lite")


@pytest.fixture
def t4(monkeypatch):
    name_device(
        monkeypatch,
        platform="gpu",
        device_kind="Tesla T4",
        compute_capability="7.5",
    )


@pytest.fixture
def a100(monkeypatch):
    name_device(
        monkeypatch,
        platform="gpu",
        device_kind="NVIDIA A100-SXM4-40GB",
        compute_capability="8.0",
    )


@pytest.fixture(autouse=True)
def untested():
    """Forgets the tests of fused kernels, before and after."""
    find_fused_fault.cache_clear()
    yield
    find_fused_fault.cache_clear()


# A TPU.


def test_a_tpu_is_described(tpu, capsys):
    bb.setup()
    printed = capsys.readouterr().out
    assert printed.endswith("\nDevice: TPU (TPU v5 lite)\n")
    assert runtime.describe()["dtype_auto"].startswith("mixed_bfloat16, ")


def test_choices_on_a_tpu(tpu):
    assert runtime.choose_dtype().path == "mixed_bfloat16"
    assert runtime.default_dtype().path == "mixed_bfloat16"
    assert runtime.choose_compilation("bfloat16").path == "xla"
    assert runtime.compiles_whole("bfloat16", with_xla=False)
    path, why = choose_path("auto", 0.1, "bfloat16")
    assert path == "einsum"
    assert "TPU" in why
    path = bb.attention_path(make("BertForMaskedLM"))
    assert path[:3] == ("einsum", "jax", "TPU (TPU v5 lite)")


def test_fused_attention_is_refused_on_a_tpu(tpu):
    with pytest.raises(ValueError, match='"fused"` cannot run .* on a TPU'):
        bb.BertEncoder(
            toy_config(attention_probs_dropout_prob=0.0), attention="fused"
        )


def test_jax_is_taken_where_a_tpu_is_installed(monkeypatch):
    installed = ("tensorflow", "jax", "libtpu")
    monkeypatch.delitem(runtime.sys.modules, "keras")
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setattr(runtime, "_is_installed", installed.__contains__)
    assert choose_backend() == "jax"


def test_a_model_of_a_user_stays_in_float32_on_a_tpu(tpu):
    assert make("BertForMaskedLM").compute_dtype == "float32"


def settle(path, dtype=None):
    recipe = PretrainingRecipe(steps=1, batch_size=8, dtype=dtype)
    return pretraining.settle_dtype(recipe, path / "run.json").dtype


def test_pre_training_computes_in_bfloat16_on_a_tpu_and_says_so(
    tpu, tmp_path, capsys
):
    assert settle(tmp_path) == "mixed_bfloat16"
    printed = capsys.readouterr().out
    assert (
        printed == "dtype: mixed_bfloat16, this is a TPU, made for bfloat16\n"
    )
    assert settle(tmp_path, "float32") == "float32"
    assert capsys.readouterr().out == ""


def test_a_run_in_float32_goes_on_so_on_a_tpu(tpu, tmp_path, capsys):
    (tmp_path / "run.json").write_text('{"recipe": {"dtype": "float32"}}')
    assert settle(tmp_path) == "float32"


def test_pre_training_stays_in_float32_elsewhere(tmp_path, capsys):
    assert settle(tmp_path) == "float32"
    assert capsys.readouterr().out == ""


REVIEWS = "text,label\n" + "good y,1\nbad n,0\n" * 8


@pytest.mark.parametrize(("asked", "dtype"), [([], "bfloat16"), (
    ["--dtype", "float32"], "float32")])  # fmt: skip
def test_the_command_computes_in_bfloat16_on_a_tpu(
    asked, dtype, tpu, tmp_path, capsys, monkeypatch
):
    from bertbook.finetuning import finetune as finetuning

    kept = []
    monkeypatch.setattr(
        finetuning, "finetune", lambda model, *_, **__: kept.append(model)
    )
    (tmp_path / "rows.csv").write_text(REVIEWS)
    words = ["finetune", str(tmp_path / "rows.csv"), "--out", str(tmp_path)]
    assert main([*words, "--model", "mini", *asked]) == 0
    assert kept[0].compute_dtype == dtype
    printed = capsys.readouterr().out
    assert printed.count("dtype: mixed_bfloat16, ") == (not asked)


# Shapes, which a TPU compiles for.


@pytest.mark.parametrize("cores", [1, 4, 8])
def test_every_core_gets_as_many_rows(cores):
    share = Share(groups=cores)
    for rows in range(1, 40):
        filled = share.round_up(rows)
        assert filled % cores == 0
        assert rows <= filled < rows + cores


def test_lengths_of_batches_are_few():
    lengths = np.arange(1, 513)
    found = {length for _, length in bucketed(lengths, 4, 512)}
    assert len(found) == len(bb.batches.batching.BUCKETS)


# GPUs.


def test_a_t4_takes_float32_and_names_float16(t4):
    dtype, why = runtime.choose_dtype()
    assert dtype == "float32"
    assert "mixed_float16" in why
    assert runtime.default_dtype().path == "float32"
    assert choose_path("auto", 0.1)[0] == "einsum"


def test_an_a100_takes_bfloat16(a100):
    assert runtime.choose_dtype().path == "mixed_bfloat16"
    assert runtime.default_dtype().path == "float32"
    assert choose_path("auto", 0.1)[0] == "einsum"


@pytest.fixture
def asked(monkeypatch):
    """The calls for fused attention, all of which XLA computes here."""
    import jax

    calls = []
    plain = jax.nn.dot_product_attention

    def kernel(query, key, value, *, mask, implementation):
        calls.append((query.shape, mask.shape, implementation))
        return plain(query, key, value, mask=mask, implementation="xla")

    monkeypatch.setattr(jax.nn, "dot_product_attention", kernel)
    return calls


@pytest.mark.parametrize(
    ("dtype", "kernel"), [("float32", "xla"), ("bfloat16", "cudnn")]
)
def test_a_fused_kernel_that_agrees_runs_without_a_warning(
    dtype, kernel, a100, asked
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path, why = choose_path("fused", 0.0, dtype)
    assert path == "fused"
    assert "agrees" in why
    assert {name for _, _, name in asked} == {kernel}


def test_a_gpu_without_the_kernel_of_cudnn_says_so(t4):
    with pytest.warns(UserWarning, match="Tesla T4.*, einsum, runs instead"):
        path, _ = choose_path("fused", 0.0, "float16")
    assert path == "einsum"


def causal(query, key, value, mask):
    """A wrong kernel: no token sees a later one."""
    length = query.shape[2]
    earlier = ops.tril(ops.ones((length, length), "bool"))
    mask = ops.logical_and(mask, earlier)
    return attention.scaled_dot_product_attention(query, key, value, mask)[0]


def without_mask(query, key, value, mask):
    """A wrong kernel: padding is seen."""
    return attention.scaled_dot_product_attention(query, key, value)[0]


def without_gradient(query, key, value, mask):
    """A wrong kernel: right forward, and no gradient of the keys."""
    import jax

    key = jax.lax.stop_gradient(key)
    return attention.scaled_dot_product_attention(query, key, value, mask)[0]


def failing(query, key, value, mask):
    raise RuntimeError("no kernel image is available for this device")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (causal, "context differs by"),
        (without_mask, "context differs by"),
        (without_gradient, "gradient of key differs by 1 of"),
        (failing, "RuntimeError: no kernel image is available"),
    ],
)
def test_a_broken_kernel_is_replaced_aloud(kernel, message, a100, monkeypatch):
    monkeypatch.setattr(attention, "fused_attention", kernel)
    config = toy_config(attention_probs_dropout_prob=0.0)
    with pytest.warns(UserWarning, match=message) as caught:
        encoder = bb.BertEncoder(config, attention="fused")
    assert len(caught) == 1
    path = bb.attention_path(encoder)
    assert path.path == "einsum"
    assert message in path.why
    assert encoder.blocks[0].attention.implementation == "einsum"


def test_the_kernel_gets_the_mask_in_its_full_shape(a100, asked):
    assert find_fused_fault(16, "float32") is None
    rows, heads, length = attention.TEST_SHAPE
    query, mask = (rows, length, heads, 16), (rows, 1, length, length)
    assert {call[:2] for call in asked} == {(query, mask)}
