"""The causal model: against Hugging Face, what it may see, its files."""

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.weights import causal_shapes
from bertbook.runtime import keras, ops
from bertbook.training.losses import classification_loss
from bertbook.weights.pretrained import named_tensors
from tests.helpers import decoders
from tests.helpers.decoders import (
    B,
    S,
    causal_config,
    draw_given,
    draw_ids,
    write_gpt2,
)
from tests.helpers.models import A_STEP, to_numpy, write_hugging_face
from tests.reference import drawn

CONFIG = causal_config()
V = CONFIG.vocab_size
REFERENCE = Path(__file__).parents[1] / "reference" / "hugging_face_gpt2.npz"


@pytest.fixture
def model():
    return decoders.causal()


# Framework.


def test_matches_hugging_face(tmp_path):
    model = CausalLM.from_pretrained(write_gpt2(tmp_path, drawn.GPT2))
    outputs = to_numpy(model(drawn.draw_gpt2(), output_hidden_states=True))
    received = drawn.gpt2_slices(outputs["hidden_states"], outputs["logits"])
    stored = np.load(REFERENCE)
    for name, array in received.items():
        difference = np.abs(array - stored[name]).max()
        print(f"{name}: {difference:.2e}")
        assert difference <= 1e-5


# Shapes, and what stands in the model.


def test_there_is_no_cross_attention_and_norms_come_first(model):
    assert all(block.cross_attention is None for block in model.blocks)
    assert all(block.norm_first for block in model.blocks)
    assert not any("cross" in weight.path for weight in model.weights)
    shapes = {
        weight.path.partition("/")[2]: tuple(weight.shape)
        for weight in model.trainable_weights
    }
    assert shapes == causal_shapes(CONFIG)


def test_outputs_have_the_stated_shapes(model):
    outputs = model(
        draw_given(), output_hidden_states=True, output_attentions=True
    )
    assert tuple(outputs["logits"].shape) == (B, S, V)
    states = [tuple(state.shape) for state in outputs["hidden_states"]]
    assert states == [(B, S, CONFIG.hidden_size)] * 3
    weights = [tuple(weights.shape) for weights in outputs["attentions"]]
    assert weights == [(B, CONFIG.num_attention_heads, S, S)] * 2
    for part in to_numpy(outputs["attentions"]):
        assert (part[..., ~np.tri(S, dtype=bool)] == 0.0).all()
    assert tuple(model(draw_given()).shape) == (B, S, V)


def test_the_output_matrix_is_the_token_table():
    model = decoders.draw_weights(CausalLM(CONFIG))
    ids = draw_ids(B, S, V)
    unused = np.setdiff1d(np.arange(V), ids)[0]
    before = to_numpy(model({"input_ids": ids}))
    table = to_numpy(model.token.embeddings).copy()
    table[unused] += 1.0
    model.token.embeddings.assign(table)
    moved = np.abs(to_numpy(model({"input_ids": ids})) - before) > 0
    np.testing.assert_array_equal(
        moved.any(axis=(0, 1)), np.arange(V) == unused
    )


def test_weights_before_a_sum_start_smaller():
    config = causal_config(num_hidden_layers=8, hidden_size=48)
    for block in CausalLM(config).blocks:
        for layer in (
            block.attention.output_projection,
            block.feed_forward.contract,
        ):
            spread = to_numpy(layer.kernel).std() * np.sqrt(2 * 8)
            assert spread == pytest.approx(0.02 * 0.88, rel=0.1)  # truncated
        spread = to_numpy(block.attention.query_key_value.kernel).std()
        assert spread == pytest.approx(0.02 * 0.88, rel=0.1)


def test_token_and_position_are_dropped_in_training_alone():
    model = CausalLM(CONFIG.replace(hidden_dropout_prob=0.5))
    ids = draw_ids(20, 29, V)
    calm, same, left = (
        to_numpy(model.embed(ids, training=training))
        for training in (False, None, True)
    )
    np.testing.assert_array_equal(calm, same)
    kept = left != 0
    np.testing.assert_allclose(left[kept], 2 * calm[kept], rtol=1e-6)
    assert abs(kept.mean() - 0.5) < 5 * 0.5 / np.sqrt(kept.size)


def test_logits_at_given_positions_are_those_among_all(model):
    batch, places = draw_given(), np.array([[0, 4], [2, 2], [3, 1]])
    every, asked = to_numpy([model(batch), model(batch, positions=places)])
    expected = np.take_along_axis(every, places[:, :, None], axis=1)
    np.testing.assert_allclose(asked, expected, atol=1e-5)


# What it may see.


def test_each_logit_depends_on_its_token_and_those_before(model):
    """The dependency matrix of a GPT is lower triangular."""
    ids = draw_ids(1, S, V)
    before = to_numpy(model({"input_ids": ids}))
    depends = np.zeros((S, S), bool)  # of row t on token s
    for s in range(S):
        changed = ids.copy()
        changed[:, s] = (changed[:, s] - 4) % 28 + 5
        after = to_numpy(model({"input_ids": changed}))
        depends[:, s] = (before != after).any(axis=(0, 2))
    np.testing.assert_array_equal(depends, np.tri(S, dtype=bool))


def test_a_later_token_changes_no_earlier_logit(model):
    ids = draw_ids(B, S, V)
    before = to_numpy(model({"input_ids": ids}))
    for t in range(1, S):
        changed = ids.copy()
        changed[:, t:] = draw_ids(B, S - t, V, seed=t)
        after = to_numpy(model({"input_ids": changed}))
        np.testing.assert_array_equal(before[:, :t], after[:, :t])


def test_padding_behind_a_text_changes_nothing(model):
    batch = draw_given()
    real = batch["attention_mask"] == 1
    masked, alone = to_numpy(
        [model(batch), model({"input_ids": batch["input_ids"]})]
    )
    np.testing.assert_allclose(masked[real], alone[real], atol=1e-5)


def test_padding_in_front_changes_nothing_with_its_positions(model):
    ids = draw_ids(B, S, V)
    expected = to_numpy(model({"input_ids": ids}))
    front = {
        "input_ids": np.pad(ids, ((0, 0), (2, 0))),
        "attention_mask": np.pad(np.ones_like(ids), ((0, 0), (2, 0))),
        "position_ids": np.pad(np.tile(np.arange(S), (B, 1)), ((0, 0), (2, 0))),
    }
    received = to_numpy(model(front))
    assert np.isfinite(received).all()  # the first rows see nothing
    np.testing.assert_allclose(received[:, 2:], expected, atol=1e-5)


def test_a_row_that_sees_nothing_is_finite(model):
    batch = draw_given()
    batch["attention_mask"][1] = 0
    assert np.isfinite(to_numpy(model(batch))).all()


def test_batch_order_changes_nothing(model):
    batch, order = draw_given(), np.array([2, 0, 1])
    turned = {name: array[order] for name, array in batch.items()}
    straight, permuted = to_numpy([model(batch), model(turned)])
    np.testing.assert_allclose(straight[order], permuted, atol=1e-5)


# Training, loading and saving.


def test_every_weight_is_trained():
    model = CausalLM(CONFIG)
    model.compile("sgd", classification_loss(), **A_STEP)
    before = to_numpy(model.trainable_weights)
    ids = draw_ids(B, S, V)
    model.fit({"input_ids": ids[:, :-1]}, ids[:, 1:], verbose=0)
    after = to_numpy(model.trainable_weights)
    for old, new, weight in zip(
        before, after, model.trainable_weights, strict=True
    ):
        assert not np.array_equal(old, new), weight.path


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_saved_folder_loads_the_same(model, dtype, tmp_path):
    model.save_pretrained(tmp_path, dtype=dtype)
    again = CausalLM.from_pretrained(tmp_path)
    tolerance = 1e-6 if dtype == "float32" else 0.05
    received, expected = to_numpy([again(draw_given()), model(draw_given())])
    np.testing.assert_allclose(received, expected, atol=tolerance)
    assert again.tokenizer.vocabulary == model.tokenizer.vocabulary
    assert again.config.extra["architectures"] == ["GPT2LMHeadModel"]
    stored = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert {array.dtype.name for array in stored.values()} == {dtype}
    width = CONFIG.hidden_size
    kernel = stored["transformer.h.1.attn.c_attn.weight"]
    assert kernel.shape == (width, 3 * width)
    assert "lm_head.weight" not in stored


def test_shards_are_read_by_their_index(model, tmp_path):
    model.save_pretrained(tmp_path, max_shard_bytes=9_000)
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    again = CausalLM.from_pretrained(tmp_path)
    np.testing.assert_array_equal(
        *to_numpy([again(draw_given()), model(draw_given())])
    )


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_published_files_load_whatever_they_carry(prefix, tmp_path):
    arrays = drawn.gpt2_arrays(drawn.GPT2)
    table = arrays["transformer.wte.weight"]
    mask = np.tri(29, dtype="float32")[None, None]
    more = {f"{prefix}h.0.attn.bias": mask, "lm_head.weight": table}
    folder = write_gpt2(tmp_path, drawn.GPT2, prefix, **more)
    model = CausalLM.from_pretrained(folder)
    expected = {
        f"{prefix}h.0.attn.bias": "a causal mask, not a weight",
        "lm_head.weight": "the same tensor as token/embeddings",
    }
    assert model.load_report.skipped == expected
    assert len(model.load_report.loaded) == len(named_tensors(model))
    np.testing.assert_array_equal(to_numpy(model.token.embeddings), table)


def test_a_vocabulary_of_another_kind_is_named_and_left(tmp_path):
    folder = write_gpt2(tmp_path, drawn.GPT2)
    (folder / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    model = CausalLM.from_pretrained(folder)
    assert model.tokenizer is None
    why = model.load_report.skipped["tokenizer.json"]
    assert why == "a vocabulary of the kind BPE, not WordPiece"


def test_keras_own_file_loads_the_same(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        *to_numpy([again(draw_given()), model(draw_given())])
    )


def test_half_precision_stays_close(model):
    half = CausalLM(CONFIG, dtype="mixed_bfloat16")
    half.set_weights(model.get_weights())
    full = to_numpy(model(draw_given()))
    rounded = to_numpy(ops.cast(half(draw_given()), "float32"))
    np.testing.assert_allclose(full, rounded, atol=0.05 * np.abs(full).max())


# Errors.


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({}, KeyError, "must hold `input_ids`"),
        ({"input_ids": np.ones((2, 30), int)}, ValueError, "29. Received: 30"),
        ({"input_ids": [[1, 33]]}, ValueError, r"\[0, 33\).* 33 in row 0"),
        ({"input_ids": [[1, 2]], "position_ids": [[0, 29]]}, ValueError,
         r"`position_ids` must be in \[0, 29\)"),
        ([[1, 2]], ValueError, "must be a dict of arrays"),
    ],
)  # fmt: skip
def test_a_bad_batch_is_refused(model, batch, error, message):
    with pytest.raises(error, match=message):
        model(batch)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([[0], [7], [0]],
         r"in \[0, {length}\).* Received: 7 in row 1, column 0"),
        ([[0], [0], [-1]],
         r"in \[0, {length}\).* Received: -1 in row 2, column 0"),
        ([[1.7], [0.0], [0.0]], "hold integers. Received: float32"),
        ([[0], [1]], r"shape \(3, M\).*Received: \(2, 1\)"),
        ([0, 1, 2], r"shape \(3, M\).*Received: \(3,\)"),
    ],
)  # fmt: skip
def test_positions_out_of_range_are_refused(message, positions):
    array = np.array(positions)
    array = array.astype("float32" if array.dtype.kind == "f" else "int32")
    for model, given in (
        (decoders.causal(), decoders.draw_given()),
        (decoders.seq2seq(), decoders.draw_pairs()),
    ):
        length = given.get("decoder_input_ids", given["input_ids"]).shape[1]
        told = message.format(length=length)
        with pytest.raises(ValueError, match=f"`positions` must.*{told}"):
            model(given, positions=array)


def test_token_type_ids_change_nothing(model):
    batch = decoders.TOKENIZER(["a b", "c"])
    assert "token_type_ids" in batch
    segments = np.ones_like(batch["token_type_ids"])
    np.testing.assert_array_equal(
        *to_numpy([model(batch), model({**batch, "token_type_ids": segments})])
    )


def test_a_model_needs_its_config():
    with pytest.raises(ValueError, match="must be a `CausalLMConfig`"):
        CausalLM(bb.BertConfig())


def test_a_bert_in_the_folder_is_refused(tmp_path):
    write_hugging_face(tmp_path, drawn.CONFIGS["gelu_new"])
    with pytest.raises(ValueError, match="`model_type` must be 'gpt2'"):
        CausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("lm_head.weight", np.ones((107, 36)), "lm_head.weight must be the"),
        ("transformer.h.2.ln_1.weight", np.ones(36),
         "`n_layer` must be 3, not"),
        ("transformer.h.1.ln_3.weight", np.ones(36), "h.1.ln_3.weight does no"),
        ("transformer.ln_f.bias", np.full(36, np.nan), "beta holds NaN"),
        ("transformer.wpe.weight", np.ones((28, 36)),
         "`n_positions` must be 28"),
        ("transformer.ln_f.bias", np.ones(35), r"has shape \(35,\), not"),
    ],
)  # fmt: skip
def test_a_wrong_tensor_is_named(name, array, message, tmp_path):
    more = {name: array.astype("float32")}
    folder = write_gpt2(tmp_path, drawn.GPT2, **more)
    with pytest.raises(ValueError, match=message):
        CausalLM.from_pretrained(folder)


def test_a_missing_tensor_is_named(tmp_path):
    folder = write_gpt2(tmp_path, drawn.GPT2)
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    del arrays["transformer.h.1.attn.c_attn.bias"]
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    with pytest.raises(ValueError, match="block_1/attention/key/bias is miss"):
        CausalLM.from_pretrained(folder)
