"""The encoder-decoder: by loops, shapes, ties, saving, and what it may see."""

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.book.forward_pass import layer_norm
from bertbook.decoder.seq2seq import Seq2SeqTransformer
from bertbook.model.embeddings import sinusoids
from bertbook.runtime import keras, ops
from bertbook.training.losses import classification_loss
from bertbook.weights.pretrained import named_tensors
from tests.helpers import decoders
from tests.helpers.decoders import (
    B,
    S,
    T,
    draw_pairs,
    draw_weights,
    seq2seq_config,
)
from tests.helpers.models import A_STEP, to_numpy

CONFIG = seq2seq_config()
D, H, V = CONFIG.hidden_size, CONFIG.head_size, CONFIG.output_size


@pytest.fixture
def model():
    return decoders.seq2seq()


class Loops:
    """The definition in NumPy, from the named tensors of a model."""

    def __init__(self, model):
        self.tensors = {n: to_numpy(t) for n, t in named_tensors(model).items()}

    def dense(self, name, vectors):
        kernel = self.tensors[f"{name}/kernel"]
        return vectors @ kernel + self.tensors[f"{name}/bias"]

    def norm(self, name, vectors):
        normed = layer_norm(vectors, CONFIG.layer_norm_eps)
        gamma, beta = (self.tensors[f"{name}/{n}"] for n in ("gamma", "beta"))
        return normed * gamma + beta

    def embed(self, name, ids):
        rows = self.tensors[f"{name}/token/embeddings"][ids]
        return rows * np.sqrt(D) + sinusoids(len(ids), D)

    def attention(self, name, query, key, value, visible):
        gathered = np.zeros_like(query)
        for t in range(len(query)):
            seen = [s for s in range(len(key)) if visible(t, s)]
            for start in range(0, D, H):
                part = slice(start, start + H)
                scores = [query[t, part] @ key[s, part] for s in seen]
                weights = np.exp(np.array(scores) / np.sqrt(H))
                gathered[t, part] = weights / weights.sum() @ value[seen, part]
        return self.dense(f"{name}/output", gathered)

    def self_attention(self, name, vectors, visible):
        parts = [
            self.dense(f"{name}/{part}", vectors)
            for part in ("query", "key", "value")
        ]
        return self.attention(name, *parts, visible)

    def cross_attention(self, name, vectors, encoded, visible):
        both = self.dense(f"{name}/key_value", encoded)
        query = self.dense(f"{name}/query", vectors)
        return self.attention(name, query, *np.split(both, 2, 1), visible)

    def work(self, name, vectors):
        widened = np.maximum(self.dense(f"{name}/expand", vectors), 0)
        return self.dense(f"{name}/contract", widened)

    def encode(self, ids, real):
        vectors = self.embed("embeddings", ids)
        for i in range(CONFIG.num_hidden_layers):
            name = f"encoder_block_{i}"
            gathered = self.self_attention(
                f"{name}/attention", vectors, lambda t, s: s < real
            )
            vectors = self.norm(f"{name}/attention_norm", vectors + gathered)
            worked = self.work(f"{name}/feed_forward", vectors)
            vectors = self.norm(f"{name}/output_norm", vectors + worked)
        return vectors

    def decode(self, ids, encoded, real):
        vectors = self.embed("target_embeddings", ids)
        for i in range(CONFIG.decoder_layers):
            name = f"decoder_block_{i}"
            gathered = self.self_attention(
                f"{name}/attention", vectors, lambda t, s: s <= t
            )
            vectors = self.norm(f"{name}/attention_norm", vectors + gathered)
            gathered = self.cross_attention(
                f"{name}/cross_attention",
                vectors,
                encoded,
                lambda t, s: s < real,
            )
            vectors = self.norm(f"{name}/cross_norm", vectors + gathered)
            worked = self.work(f"{name}/feed_forward", vectors)
            vectors = self.norm(f"{name}/feed_forward_norm", vectors + worked)
        return vectors @ self.tensors["target_embeddings/token/embeddings"].T


# Definition.


def test_the_model_computes_its_definition(model):
    loops, batch = Loops(model), draw_pairs()
    received = to_numpy(model(batch))
    for row in range(B):
        real = batch["attention_mask"][row].sum()
        encoded = loops.encode(batch["input_ids"][row], real)
        ids = batch["decoder_input_ids"][row]
        expected = loops.decode(ids, encoded, real)
        difference = np.abs(received[row] - expected).max()
        print(f"row {row}: {difference:.2e}")
        assert difference <= 1e-4


# Shapes, counts and ties.


def test_shapes_for_a_source_and_a_target_of_other_length(model):
    outputs = model(draw_pairs(), output_attentions=True)
    heads = CONFIG.num_attention_heads
    assert tuple(outputs["logits"].shape) == (B, T, V)
    shapes = {
        name: [tuple(weights.shape) for weights in outputs[name]]
        for name in outputs
        if name != "logits"
    }
    assert shapes == {
        "encoder_attentions": [(B, heads, S, S)],
        "attentions": [(B, heads, T, T)] * 2,
        "cross_attentions": [(B, heads, T, S)] * 2,
    }
    encoded, _ = model.encode(draw_pairs())
    assert tuple(encoded.shape) == (B, S, D)
    probabilities = to_numpy(ops.softmax(outputs["logits"], axis=-1))
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, atol=1e-5)
    assert probabilities.argmax(axis=-1).shape == (B, T)


def test_logits_at_given_positions_are_those_among_all(model):
    batch, places = draw_pairs(), np.array([[0, 4], [2, 2], [3, 1]])
    every, asked = to_numpy([model(batch), model(batch, positions=places)])
    expected = np.take_along_axis(every, places[:, :, None], axis=1)
    np.testing.assert_allclose(asked, expected, atol=1e-5)


@pytest.mark.any_backend
def test_the_base_model_has_six_blocks_on_each_side():
    model = Seq2SeqTransformer(
        bb.Seq2SeqConfig(vocab_size=11, hidden_size=32, intermediate_size=40)
    )
    assert (len(model.encoder_blocks), len(model.decoder_blocks)) == (6, 6)
    logits = model({"input_ids": [[5, 6, 7]], "decoder_input_ids": [[2, 5]]})
    assert tuple(logits.shape) == (1, 2, 11)


def test_one_vocabulary_is_one_table_for_source_target_and_output():
    model = draw_weights(
        Seq2SeqTransformer(seq2seq_config(target_vocab_size=None))
    )
    tables = [w for w in model.weights if w.path.endswith("embeddings")]
    assert len(tables) == 1
    batch = draw_pairs()
    before = to_numpy(model(batch))
    batch["decoder_input_ids"][:] = decoders.BOS
    batch["input_ids"][:] = 7
    unused = 9
    changed = to_numpy(tables[0]).copy()
    before = to_numpy(model(batch))
    changed[unused] += 1.0  # a row that neither side reads
    tables[0].assign(changed)
    moved = np.abs(to_numpy(model(batch)) - before).max(axis=(0, 1)) > 0
    np.testing.assert_array_equal(moved, np.arange(len(moved)) == unused)


def test_two_vocabularies_tie_the_output_to_the_target(model):
    names = [n for n in named_tensors(model) if n.endswith("embeddings")]
    assert names == [
        "embeddings/token/embeddings",
        "target_embeddings/token/embeddings",
    ]


def test_tables_start_so_that_scaled_rows_have_variance_one():
    model = Seq2SeqTransformer(seq2seq_config(vocab_size=997))
    table = to_numpy(model.source_embeddings.token.embeddings)
    assert table.std() * np.sqrt(D) == pytest.approx(1.0, abs=0.02)


# What it may see.


def test_a_later_target_token_changes_no_earlier_logit(model):
    batch = draw_pairs()
    before = to_numpy(model(batch))
    for t in range(1, T):
        changed = {name: array.copy() for name, array in batch.items()}
        changed["decoder_input_ids"][:, t:] = decoders.draw_ids(B, T - t, V, t)
        after = to_numpy(model(changed))
        np.testing.assert_array_equal(before[:, :t], after[:, :t])
        assert (before[:, t] != after[:, t]).any()


def test_every_source_token_changes_every_logit_and_padding_none(model):
    batch = draw_pairs()
    before = to_numpy(model(batch))
    for s in range(S):
        changed = {name: array.copy() for name, array in batch.items()}
        changed["input_ids"][:, s] = 5 + (batch["input_ids"][:, s] % 7)
        moved = np.abs(to_numpy(model(changed)) - before).max(axis=2) > 0
        for row in range(B):
            real = batch["attention_mask"][row, s] == 1
            assert (moved[row] == real).all()


def test_padding_changes_no_logit(model):
    batch = draw_pairs()
    longer = {
        name: np.pad(array, ((0, 0), (0, 3))) for name, array in batch.items()
    }
    short, long = to_numpy([model(batch), model(longer)])
    np.testing.assert_allclose(short, long[:, :T], atol=1e-5)
    hidden = {**longer, "decoder_attention_mask": np.ones((B, T + 3), "int32")}
    hidden["decoder_attention_mask"][:, 2] = 0
    masked = to_numpy(model(hidden))
    np.testing.assert_array_equal(masked[:, :2], long[:, :2])
    assert np.abs(masked[:, 3] - long[:, 3]).max() > 1e-3


def test_a_row_that_sees_nothing_is_finite(model):
    batch = draw_pairs()
    batch["attention_mask"][1] = 0
    batch["decoder_attention_mask"] = np.zeros((B, T), "int32")
    assert np.isfinite(to_numpy(model(batch))).all()


# Training, loading and saving.


def test_every_weight_is_trained():
    model = Seq2SeqTransformer(seq2seq_config())
    model.compile("sgd", classification_loss(), **A_STEP)
    before = to_numpy(model.trainable_weights)
    labels = decoders.draw_ids(B, T, V, seed=5)
    model.fit(draw_pairs(), labels, verbose=0)
    after = to_numpy(model.trainable_weights)
    for old, new, weight in zip(
        before, after, model.trainable_weights, strict=True
    ):
        assert not np.array_equal(old, new), weight.path


def test_a_row_of_padding_counts_for_nothing(model):
    batch, labels = draw_pairs(), decoders.draw_ids(B, T, V, seed=5)
    weights = (np.arange(T) < [[5], [3], [1]]).astype("float32")
    logits = to_numpy(model(batch)).astype("float64")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    picked = np.take_along_axis(logs, labels[:, :, None], axis=-1)[:, :, 0]
    expected = -(picked * weights).sum() / weights.sum()
    loss = classification_loss()
    assert float(loss(labels, logits, weights)) == pytest.approx(expected, 1e-6)
    labels[weights == 0] = 0
    assert float(loss(labels, logits, weights)) == pytest.approx(expected, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_saved_folder_loads_the_same(model, dtype, tmp_path):
    model.save_pretrained(tmp_path, dtype=dtype)
    again = Seq2SeqTransformer.from_pretrained(tmp_path)
    tolerance = 1e-6 if dtype == "float32" else 0.05
    received, expected = to_numpy([again(draw_pairs()), model(draw_pairs())])
    np.testing.assert_allclose(received, expected, atol=tolerance)
    assert again.load_report.layout == "bertbook"
    assert not again.load_report.skipped
    assert not again.load_report.drawn
    assert again.tokenizer.vocabulary == model.tokenizer.vocabulary
    assert len(again.target_tokenizer) == len(model.target_tokenizer)
    stored = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert {array.dtype.name for array in stored.values()} == {dtype}
    assert "decoder_block_1.cross_attention.key_value.kernel" in stored


def test_a_shared_vocabulary_is_saved_once(tmp_path):
    model = Seq2SeqTransformer(seq2seq_config(target_vocab_size=None))
    model.tokenizer = model.target_tokenizer = decoders.TOKENIZER
    model.save_pretrained(tmp_path)
    assert not (tmp_path / "target").exists()
    again = Seq2SeqTransformer.from_pretrained(tmp_path)
    assert again.target_tokenizer is again.tokenizer


def test_a_folder_without_vocabularies_has_no_tokenizers(tmp_path):
    Seq2SeqTransformer(seq2seq_config()).save_pretrained(tmp_path)
    again = Seq2SeqTransformer.from_pretrained(tmp_path)
    assert again.tokenizer is None
    assert again.target_tokenizer is None


def test_keras_own_file_loads_the_same(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        *to_numpy([again(draw_pairs()), model(draw_pairs())]), atol=1e-6
    )


def test_half_precision_stays_close(model):
    half = Seq2SeqTransformer(CONFIG, dtype="mixed_bfloat16")
    half.set_weights(model.get_weights())
    full, rounded = to_numpy([model(draw_pairs()), half(draw_pairs())])
    rounded = rounded.astype("float32")
    np.testing.assert_allclose(full, rounded, atol=0.05 * np.abs(full).max())


# Errors.


def without(name):
    return {n: a for n, a in draw_pairs().items() if n != name}


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (without("input_ids"), KeyError, "must hold `input_ids`"),
        (without("decoder_input_ids"), KeyError,
         "In the targets, `decoder_input_ids`: A batch must hold"),
        ({**draw_pairs(), "input_ids": np.zeros((B, 0), "int32")}, ValueError,
         r"at least one token. Received: \(3, 0\)"),
        ({"input_ids": np.ones((B, 30), "int32")}, ValueError,
         "`max_position_embeddings`, 29. Received: 30 tokens"),
        ({**draw_pairs(), "decoder_input_ids": np.ones((B, 30), "int32")},
         ValueError, "In the targets.* 29. Received: 30 tokens"),
        ({**draw_pairs(), "decoder_input_ids": np.full((B, T), V)}, ValueError,
         r"In the targets.*\[0, 34\).*Received: 34 in row 0"),
        ({**draw_pairs(), "decoder_input_ids": np.ones((B + 1, T), "int32")},
         ValueError, "a row for each of `input_ids`, 3. Received: 4"),
        ({**draw_pairs(), "decoder_attention_mask": np.full((B, T), 2)},
         ValueError, "In the targets.*`attention_mask` must hold 1"),
        ({**draw_pairs(), "attention_mask": np.ones((B, S, S), "int32")},
         ValueError, r"shape \(B, S\) here. Received: \(3, 7, 7\)"),
        ([[1, 2]], ValueError, "must be a dict of arrays"),
    ],
)  # fmt: skip
def test_a_bad_batch_is_refused(model, batch, error, message):
    with pytest.raises(error, match=message):
        model(batch)


def test_a_model_needs_its_config():
    with pytest.raises(ValueError, match="must be a `Seq2SeqConfig`"):
        Seq2SeqTransformer(bb.BertConfig())


def test_another_model_in_the_folder_is_refused():
    with pytest.raises(ValueError, match="must be 'seq2seq_transformer'"):
        Seq2SeqTransformer.from_pretrained("mini")


def test_a_vocabulary_with_too_many_pieces_is_refused(tmp_path):
    for size, message in (
        ({"vocab_size": 32}, "33 pieces, more than `vocab_size`. Rec.* 32"),
        ({"target_vocab_size": 33}, "34 pieces.*`target_vocab_size`. Rec.* 33"),
    ):
        config = seq2seq_config(num_decoder_layers=1, **size)
        model = Seq2SeqTransformer(config)
        model.tokenizer = decoders.TOKENIZER
        model.target_tokenizer = decoders.TARGET_TOKENIZER
        model.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match=message):
            Seq2SeqTransformer.from_pretrained(tmp_path)


def test_a_missing_tensor_is_named(model, tmp_path):
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    del arrays["decoder_block_0.cross_norm.gamma"]
    safetensors.numpy.save_file(arrays, path)
    with pytest.raises(ValueError, match="cross_norm/gamma is missing"):
        Seq2SeqTransformer.from_pretrained(tmp_path)


def test_a_tensor_without_a_place_is_named(tmp_path):
    config = decoders.seq2seq_config(target_vocab_size=len(decoders.TOKENIZER))
    Seq2SeqTransformer(config).save_pretrained(tmp_path)
    for changes, message in (
        ({"num_decoder_layers": 1}, "`num_decoder_layers` must be 2, not 1"),
        ({"target_vocab_size": None}, r"target_embeddings\..* does not belong"),
    ):
        config.replace(**changes).to_json(tmp_path / "config.json")
        with pytest.raises(ValueError, match=message):
            Seq2SeqTransformer.from_pretrained(tmp_path)
