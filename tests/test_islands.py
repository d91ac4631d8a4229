"""Functions that XLA compiles between products, and where that is done."""

import math

import numpy as np
import pytest

import bertbook as bb
from bertbook import islands, runtime
from bertbook.model.attention import (
    MASKED_SCORE,
    choose_path,
    island_attention,
    scaled_dot_product_attention,
)
from bertbook.model.layers import Dense, LayerNorm
from bertbook.runtime import keras, ops
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import make_optimizer

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
tensorflow_only = pytest.mark.skipif(
    not ON_TENSORFLOW, reason="islands are TensorFlow's"
)
ROUNDING = 2**-8  # bfloat16 keeps eight bits
B, S, D, F, V = 3, 5, 8, 11, 13


@pytest.fixture
def with_islands(monkeypatch):
    """Islands on every processor."""
    monkeypatch.setenv("BERTBOOK_COMPILATION", "islands")


@pytest.fixture
def with_xla(monkeypatch):
    """No islands, whatever the processor."""
    monkeypatch.setenv("BERTBOOK_COMPILATION", "xla")


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def value_and_gradients(function, *arrays, dtype):
    """Returns a function's value and gradients, float arrays cast."""
    import tensorflow as tf

    tensors = [
        tf.cast(array, dtype)
        if array.dtype == "float32"
        else tf.constant(array)
        for array in arrays
    ]
    floats = [tensor for tensor in tensors if tensor.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        value = function(*tensors)
        weight = tf.cast(draw(*value.shape, seed=9), value.dtype)
        total = tf.reduce_sum(value * weight)
    found = [value, *tape.gradient(total, floats)]
    return [np.asarray(tf.cast(tensor, "float32")) for tensor in found]


def plain_softmax(scores, mask):
    scores = ops.where(mask, scores / math.sqrt(4), MASKED_SCORE)
    return ops.softmax(scores, axis=-1)


def plain_norm(values, gamma, beta):
    return ops.layer_normalization(values, gamma, beta, -1, 1e-12)


def plain_activation(values, bias):
    return ops.gelu(values + bias, approximate=False)


def exact_gelu(values):
    return ops.gelu(values, approximate=False)


ISLANDS = {
    "gelu": (lambda x,
        b: islands.add_bias_and_activate(x, b, activation=exact_gelu),
        plain_activation, (draw(B, S, F), draw(F, seed=1))),
    "norm": (lambda x, g, b: islands.normalize(x, g, b, epsilon=1e-12),
        plain_norm, (draw(B, S, D), draw(D, seed=1), draw(D, seed=2))),
    "softmax": (lambda s, m: islands.masked_softmax(s, m,
        scale=1 / math.sqrt(4), hidden=MASKED_SCORE), plain_softmax,
        (draw(B, 2, S, S), draw(B, 1, 1, S, seed=4) > -0.8)),
    "cross-entropy": (islands.cross_entropy, lambda logits,
        labels: ops.sparse_categorical_crossentropy(labels, logits,
        from_logits=True),
        (draw(B, S, V), np.arange(B * S, dtype="int32").reshape(B, S) % V)),
}  # fmt: skip


# Definition: the numbers of the plain functions.


@tensorflow_only
@pytest.mark.parametrize("name", ISLANDS)
def test_an_island_computes_what_the_plain_function_does(name):
    island, plain, arrays = ISLANDS[name]
    received = value_and_gradients(island, *arrays, dtype="float32")
    expected = value_and_gradients(plain, *arrays, dtype="float32")
    for first, second in zip(received, expected, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=2e-6)


@tensorflow_only
@pytest.mark.parametrize("name", ISLANDS)
def test_in_16_bits_an_island_only_rounds(name):
    island, plain, arrays = ISLANDS[name]
    received = value_and_gradients(island, *arrays, dtype="bfloat16")
    expected = value_and_gradients(plain, *arrays, dtype="float32")
    for first, second in zip(received, expected, strict=True):
        size = np.abs(second).max()
        assert np.abs(first - second).max() < 4 * ROUNDING * max(size, 1)


@tensorflow_only
def test_the_norm_on_an_island_has_the_epsilon_that_is_asked_for():
    arrays = draw(B, S, D), draw(D, seed=1), draw(D, seed=2)
    received = islands.normalize(*arrays, epsilon=0.5)
    expected = ops.layer_normalization(*arrays, -1, 0.5)
    np.testing.assert_allclose(
        *map(ops.convert_to_numpy, (received, expected)), rtol=1e-4, atol=2e-6
    )


@tensorflow_only
def test_attention_on_islands_is_attention():
    query, key, value = (draw(B, 2, S, 4, seed=seed) for seed in range(3))
    mask = draw(B, 1, 1, S, seed=4) > -0.8
    for hidden in (mask, None):
        received = island_attention(query, key, value, hidden)
        expected = scaled_dot_product_attention(query, key, value, hidden)
        for first, second in zip(received, expected, strict=True):
            np.testing.assert_allclose(
                ops.convert_to_numpy(first),
                ops.convert_to_numpy(second),
                atol=1e-6,
            )


@tensorflow_only
def test_islands_drop_attention_weights():
    query, key, value = (draw(B, 2, S, 4, seed=seed) for seed in range(3))
    context, weights = island_attention(
        query, key, value, None, lambda weights: weights * 0
    )
    assert not np.any(context)
    assert not np.any(weights)


# Whole models.


def make_model(**options):
    config = bb.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=12, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.2,
    )  # fmt: skip
    keras.utils.set_random_seed(3)
    return bb.BertForMaskedLM(config, **options)


def make_batch():
    rng = np.random.default_rng(1)
    mask = (np.arange(9) < [[9], [6], [4]]).astype("int32")
    x = {
        "input_ids": rng.integers(5, 50, (3, 9)).astype("int32") * mask,
        "attention_mask": mask,
        "token_type_ids": np.zeros((3, 9), "int32"),
        "masked_lm_positions": np.array([[1, 3], [2, 4], [1, 2]], "int32"),
    }
    return x, rng.integers(5, 50, (3, 2)), np.ones((3, 2), "float32")


def train(steps, whole, **options):
    """Returns the losses of some steps."""
    model = make_model(**options)
    compiled = runtime.choose_compilation(model.compute_dtype).path == "islands"
    model.compile(
        make_optimizer(1e-2, compiled=compiled),
        classification_loss(),
        jit_compile=whole,
    )
    x, y, weights = make_batch()
    return [float(model.train_on_batch(x, y, weights)) for _ in range(steps)]


@pytest.mark.slow  # ten seconds and more
@tensorflow_only
def test_losses_of_16_bits_stay_with_those_of_float32(monkeypatch):
    expected = train(12, whole=False)
    monkeypatch.setenv("BERTBOOK_COMPILATION", "islands")
    received = train(12, whole=False, dtype="mixed_bfloat16")
    np.testing.assert_allclose(received, expected, atol=2e-2)
    assert received[-1] < received[0] - 0.5


@tensorflow_only
def test_float32_takes_no_island(with_islands):
    assert not islands.on_island(ops.zeros((2, 3)))
    assert islands.on_island(ops.zeros((2, 3), "bfloat16"))
    assert bb.attention_path(make_model()).path == "einsum"


@tensorflow_only
def test_symbolic_tensors_take_no_island(with_islands):
    assert not islands.on_island(keras.KerasTensor((2, 3), "bfloat16"))


@tensorflow_only
def test_the_path_can_be_asked_for_and_is_told(with_islands):
    model = make_model(dtype="mixed_bfloat16")
    path = bb.attention_path(model)
    assert path.path == "islands"
    assert path.why
    plain = make_model(dtype="mixed_bfloat16", attention="einsum")
    assert bb.attention_path(plain).path == "einsum"
    x, *_ = make_batch()
    received, expected = (
        ops.convert_to_numpy(ops.cast(m(x), "float32")) for m in (model, plain)
    )
    np.testing.assert_allclose(received, expected, atol=0.1)


def test_islands_that_cannot_be_are_refused(with_xla):
    with pytest.raises(ValueError, match='`attention="islands"` cannot run'):
        choose_path("islands", 0.0, "bfloat16")


@tensorflow_only
def test_weights_of_attention_are_given_on_islands(with_islands):
    model = make_model(dtype="mixed_bfloat16")
    x, *_ = make_batch()
    x.pop("masked_lm_positions")
    outputs = model.encoder(x, output_attentions=True)
    for weights in outputs["attentions"]:
        sums = np.asarray(ops.cast(weights, "float32")).sum(axis=-1)
        np.testing.assert_allclose(sums, 1.0, atol=0.02)


@pytest.mark.slow  # ten seconds and more
@tensorflow_only
def test_the_update_of_all_variables_compiled_is_the_same():
    results = []
    for compiled in (False, True):
        model = make_model()
        model.compile(
            make_optimizer(1e-2, compiled=compiled),
            classification_loss(),
            jit_compile=False,
        )
        x, y, weights = make_batch()
        for _ in range(5):
            model.train_on_batch(x, y, weights)
        results.append(model.get_weights())
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, atol=2e-5)


def test_a_dense_layer_is_that_of_keras():
    keras.utils.set_random_seed(0)
    ours = Dense(5, 0.3, "tanh")
    theirs = keras.layers.Dense(5, "tanh")
    x = draw(2, 3, 4)
    theirs.build(x.shape)
    ours(x)
    theirs.set_weights(ours.get_weights())
    np.testing.assert_array_equal(
        ops.convert_to_numpy(ours(x)), ops.convert_to_numpy(theirs(x))
    )
    assert 0.1 < ops.convert_to_numpy(ours.kernel).std() < 0.4


def test_a_dense_layer_can_hold_integers():
    layer = Dense(5, 1.0)
    x = draw(2, 4)
    expected = ops.convert_to_numpy(layer(x))
    layer.quantize("int8")
    received = ops.convert_to_numpy(layer(x))
    assert 0 < np.abs(received - expected).max() < 0.2


def test_a_norm_is_that_of_keras():
    x = draw(2, 3, 4)
    ours, theirs = (
        LayerNorm(epsilon=1e-12),
        keras.layers.LayerNormalization(epsilon=1e-12),
    )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(ours(x)), ops.convert_to_numpy(theirs(x))
    )


# What is chosen where.


@pytest.fixture
def processor(monkeypatch):
    """Tells the package which processor it runs on."""
    names = ("BERTBOOK_COMPILATION", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
    for name in (*names, "TF_ENABLE_ONEDNN_OPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(runtime, "device_name", lambda: "CPU")

    def tell(*flags, vendor=runtime.INTEL, **environment):
        monkeypatch.setattr(
            runtime, "_processor", lambda: (vendor, frozenset(flags))
        )
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return tell


@tensorflow_only
@pytest.mark.parametrize(
    ("flags", "environment", "path", "dtype"),
    [
        (("amx_bf16",), {}, "islands", "mixed_bfloat16"),
        (("avx2",), {}, "xla", "float32"),
        ((), {}, "xla", "float32"),
        (("amx_bf16",), {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, "xla",
         "float32"),
        (("amx_bf16",), {"DNNL_MAX_CPU_ISA": "avx2"}, "xla", "float32"),
        (("amx_bf16",), {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_AMX"}, "islands",
         "mixed_bfloat16"),
        (("amx_bf16",), {"ONEDNN_MAX_CPU_ISA": "DEFAULT"}, "islands",
         "mixed_bfloat16"),
        (("amx_bf16",), {"TF_ENABLE_ONEDNN_OPTS": "0"}, "xla", "float32"),
        (("amx_bf16",), {"BERTBOOK_COMPILATION": "xla"}, "xla", "float32"),
        (("avx2",), {"BERTBOOK_COMPILATION": "islands"}, "islands",
         "mixed_bfloat16"),
    ],
)  # fmt: skip
def test_choices_on_a_processor(flags, environment, path, dtype, processor):
    processor(*flags, **environment)
    choice = runtime.choose_compilation("bfloat16")
    assert choice.path == path
    assert choice.why
    assert runtime.choose_compilation("float32").path == "xla"
    assert runtime.choose_dtype().path == dtype
    assert runtime.compiles_whole("bfloat16") == (path == "xla")


@tensorflow_only
@pytest.mark.parametrize(
    ("vendor", "limit", "path"),
    [
        (runtime.AMD, "", "islands"),
        (runtime.AMD, "AVX512_CORE_BF16", "islands"),
        (runtime.AMD, "AVX512_CORE_AMX", "islands"),
        (runtime.AMD, "AVX512_CORE_VNNI", "xla"),
        (runtime.AMD, "AVX2", "xla"),
        (runtime.INTEL, "", "xla"),
    ],
)
def test_avx512_bf16_is_fast_on_amd_alone(vendor, limit, path, processor):
    processor("avx512_bf16", vendor=vendor, ONEDNN_MAX_CPU_ISA=limit)
    assert runtime.choose_compilation("bfloat16").path == path


@tensorflow_only
def test_a_choice_names_the_instructions(processor):
    processor("avx512_bf16", vendor=runtime.AMD)
    assert "AVX512-BF16" in runtime.choose_dtype().why
    processor("avx512_bf16", "amx_bf16")
    assert "AMX" in runtime.choose_dtype().why


def test_the_processor_is_read_as_linux_tells_it(monkeypatch, tmp_path):
    told = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2\n\n"
    (tmp_path / "cpuinfo").write_text(told + "flags: other")
    monkeypatch.setattr(runtime, "Path", lambda _: tmp_path / "cpuinfo")
    read = runtime._processor.__wrapped__
    assert read() == (runtime.AMD, {"fpu", "avx2"})
    monkeypatch.setattr(runtime, "Path", lambda _: tmp_path / "none")
    assert read() == ("", frozenset())


@tensorflow_only
@pytest.mark.parametrize(
    ("flags", "environment", "reason"),
    [
        (("avx2",), {}, "neither AMX"),
        (("amx_bf16",), {"BERTBOOK_COMPILATION": "xla"}, "asked for"),
    ],
)
def test_float32_says_why_it_is_chosen(flags, environment, reason, processor):
    processor(*flags, **environment)
    choice = runtime.choose_dtype()
    assert choice.path == "float32"
    assert reason in choice.why
    assert reason in runtime.describe()["dtype_auto"]


def test_jax_does_not_blame_the_processor(processor):
    if ON_TENSORFLOW:
        pytest.skip("needs the JAX backend")
    processor("amx_bf16")
    choice = runtime.choose_dtype()
    assert choice.path == "float32"
    assert "neither AMX" not in choice.why
    assert "JAX" in choice.why


@tensorflow_only
def test_a_dense_layer_without_bias_takes_no_island(with_islands):
    layer = Dense(5, 1.0, "tanh", use_bias=False, dtype="mixed_bfloat16")
    received = ops.convert_to_numpy(ops.cast(layer(draw(2, 4)), "float32"))
    expected = np.tanh(draw(2, 4) @ ops.convert_to_numpy(layer.kernel))
    np.testing.assert_allclose(received, expected, atol=4 * ROUNDING)


@tensorflow_only
@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((7, 5), "float32"),
        ((8, 0), "mixed_bfloat16"),
        ((9, 0), "mixed_bfloat16"),
    ],
)
def test_choices_on_a_gpu(capability, expected, monkeypatch, processor):
    processor("amx_bf16")
    monkeypatch.setattr(runtime, "device_name", lambda: "GPU (a card)")
    monkeypatch.setattr(runtime, "_accelerator", lambda: capability)
    assert runtime.choose_compilation("bfloat16").path == "xla"
    assert runtime.choose_dtype().path == expected


def test_jax_compiles_everything(processor):
    if ON_TENSORFLOW:
        pytest.skip("needs the JAX backend")
    processor("amx_bf16")
    assert runtime.choose_compilation("bfloat16").path == "xla"
    assert runtime.compiles_whole("bfloat16", with_xla=False)


def test_another_word_is_refused(monkeypatch):
    monkeypatch.setenv("BERTBOOK_COMPILATION", "onednn")
    with pytest.raises(ValueError, match="`BERTBOOK_COMPILATION` must be"):
        runtime.choose_compilation("float32")
