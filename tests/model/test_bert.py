"""Models with a head: stored outputs, shapes, ties, loading and saving."""

import math
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.batches.batching import MODEL_INPUTS
from bertbook.batches.packing import pack, unpack
from bertbook.model.bert import MaskedLMHead
from bertbook.runtime import keras, ops
from bertbook.training.losses import classification_loss, pretraining_losses
from bertbook.weights.names import (
    TIED,
    count_parameters,
    head_names,
    head_shapes,
)
from bertbook.weights.pretrained import named_tensors
from tests.helpers.models import (
    A_STEP,
    to_numpy,
    write_google,
    write_hugging_face,
    write_pretraining,
)
from tests.reference import drawn

REFERENCE = Path(__file__).parents[1] / "reference"
CONFIG = drawn.CONFIGS["gelu_new"]
B, S, M = 3, 23, 4


pytestmark = pytest.mark.usefixtures("plain_graphs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_pretraining(tmp_path_factory.mktemp("drawn"), CONFIG)


@pytest.fixture(scope="module")
def model(folder):
    """Both heads, not to be changed."""
    return bb.BertForPreTraining.from_pretrained(folder)


@pytest.fixture(scope="module")
def masked(folder):
    """The first head, not to be changed."""
    return bb.BertForMaskedLM.from_pretrained(folder)


def batch_with_slots(seed=0):
    """Three rows, each with four hidden tokens among the real ones."""
    batch = drawn.draw_batch(CONFIG)
    rng = np.random.default_rng(seed)
    lengths = batch["attention_mask"].sum(axis=1)
    batch["masked_lm_positions"] = np.stack(
        [rng.choice(length, M, replace=False) for length in lengths]
    ).astype("int32")
    return batch


# Definition and peers.


@pytest.mark.parametrize("name", drawn.PRETRAINING)
def test_matches_hugging_face(name, tmp_path):
    config = drawn.CONFIGS[name]
    model = bb.BertForPreTraining.from_pretrained(
        write_pretraining(tmp_path, config)
    )
    outputs = to_numpy(model(drawn.draw_batch(config)))
    stored = np.load(REFERENCE / f"hugging_face_pretraining_{name}.npz")
    for key, array in drawn.logit_slices(**outputs).items():
        difference = np.abs(array - stored[key]).max()
        print(f"{name} {key}: {difference:.2e}")
        assert difference <= 1e-5


def head_by_loops(head, hidden, table):
    """The definition in NumPy: dense, GELU, norm, tied matrix, bias."""
    erf = np.vectorize(math.erf)
    kernel, bias = to_numpy([head.dense.kernel, head.dense.bias])
    logits = np.zeros((*hidden.shape[:2], len(table)))
    for b, m in np.ndindex(*hidden.shape[:2]):
        x = hidden[b, m] @ kernel + bias
        x = x * 0.5 * (1 + erf(x / np.sqrt(2)))
        x = (x - x.mean()) / np.sqrt(x.var() + head.norm.epsilon)
        x = x * ops.convert_to_numpy(head.norm.gamma)
        x = x + ops.convert_to_numpy(head.norm.beta)
        for v, row in enumerate(table):
            logits[b, m, v] = x @ row + ops.convert_to_numpy(head.bias)[v]
    return logits


def test_the_head_computes_its_definition():
    config = bb.BertConfig(
        vocab_size=7,
        hidden_size=6,
        num_attention_heads=2,
        initializer_range=0.5,
    )
    head = MaskedLMHead(config)
    head.build((None, None, 6))
    rng = np.random.default_rng(0)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    hidden = rng.normal(size=(2, 3, 6)).astype("float32")
    table = rng.normal(size=(7, 6)).astype("float32")
    expected = head_by_loops(head, hidden, table)
    received = ops.convert_to_numpy(head(hidden, table))
    np.testing.assert_allclose(received, expected, atol=1e-5)


def test_the_head_matches_keras_hub():
    keras_hub = pytest.importorskip("keras_hub", reason="needs KerasHub")
    config = bb.BertConfig(
        vocab_size=11, hidden_size=6, num_attention_heads=2, layer_norm_eps=1e-5
    )
    head = MaskedLMHead(config)
    head.build((None, None, 6))
    table = keras_hub.layers.ReversibleEmbedding(11, 6)
    table.build((None, None))
    peer = keras_hub.layers.MaskedLMHead(
        token_embedding=table,
        intermediate_activation=lambda x: ops.gelu(x, approximate=False),
    )
    hidden = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")
    places = np.array([[1, 3, 0], [4, 2, 2]])
    peer(hidden, places)
    rng = np.random.default_rng(1)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    theirs = {w.path.split("masked_lm_head")[-1]: w for w in peer.weights}
    for name, weight in (
        ("intermediate_dense/kernel", head.dense.kernel),
        ("intermediate_dense/bias", head.dense.bias),
        ("intermediate_layer_norm/gamma", head.norm.gamma),
        ("intermediate_layer_norm/beta", head.norm.beta),
        ("output_bias", head.bias),
    ):
        (found,) = (w for path, w in theirs.items() if path.endswith(name))
        found.assign(weight)
    taken = np.take_along_axis(hidden, places[:, :, None], axis=1)
    ours = head(taken, table.embeddings)
    np.testing.assert_allclose(
        ops.convert_to_numpy(ours),
        ops.convert_to_numpy(peer(hidden, places)),
        atol=1e-5,
    )


# Shapes, counts and ties.


@pytest.mark.any_backend
def test_shapes_of_the_logits(model, masked):
    batch = batch_with_slots()
    outputs = model(batch)
    assert outputs["mlm_logits"].shape == (B, M, CONFIG.vocab_size)
    assert outputs["nsp_logits"].shape == (B, 2)
    assert masked(batch).shape == (B, M, CONFIG.vocab_size)
    del batch["masked_lm_positions"]
    assert masked(batch).shape == (B, S, CONFIG.vocab_size)


def test_gathered_logits_are_those_of_all_tokens(masked):
    batch = batch_with_slots()
    gathered = to_numpy(masked(batch))
    places = batch.pop("masked_lm_positions")
    every = to_numpy(masked(batch))
    taken = np.take_along_axis(every, places[:, :, None], axis=1)
    np.testing.assert_allclose(gathered, taken, atol=1e-5)


def test_both_models_give_the_same_logits(model, masked):
    batch = batch_with_slots()
    expected = to_numpy(model(batch))["mlm_logits"]
    np.testing.assert_allclose(to_numpy(masked(batch)), expected, atol=1e-6)


def test_published_counts_of_the_heads():
    base = bb.BertConfig.named("base")
    sizes = {n: int(np.prod(s)) for n, s in head_shapes(base).items()}
    masked = sum(n for k, n in sizes.items() if k.startswith("masked_lm"))
    following = sum(
        n for k, n in sizes.items() if k.startswith("next_sentence")
    )
    assert masked == 622_650
    assert following == 1_538
    assert count_parameters(base) + masked + following == 110_106_428


def test_every_weight_has_a_name_and_its_shape(model):
    tensors = named_tensors(model)
    for name, shape in head_shapes(CONFIG).items():
        assert tuple(tensors[name].shape) == shape
    assert {n.bertbook for n in head_names()} >= set(head_shapes(CONFIG))
    assert model.count_params() == count_parameters(CONFIG) + sum(
        int(np.prod(shape)) for shape in head_shapes(CONFIG).values()
    )


def test_the_output_matrix_is_the_token_table(folder):
    model = bb.BertForPreTraining.from_pretrained(folder)
    batch = batch_with_slots()
    before = to_numpy(model(batch))["mlm_logits"]
    table = model.encoder.embeddings.token.embeddings
    unused = np.setdiff1d(np.arange(CONFIG.vocab_size), batch["input_ids"])[0]
    changed = to_numpy([table])[0].copy()
    changed[unused] += 1.0  # a row that no input reads
    table.assign(changed)
    after = to_numpy(model(batch))["mlm_logits"]
    moved = np.abs(after - before).max(axis=(0, 1)) > 0
    assert moved[unused]
    assert moved.sum() == 1


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForMaskedLM"])
def test_the_token_table_learns_through_the_head(kind, tmp_path):
    """Rows that no input reads get the gradient of the cross-entropy."""
    config = CONFIG.replace(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    folder = write_pretraining(tmp_path, config)
    model = getattr(bb, kind).from_pretrained(folder)
    batch, size = batch_with_slots(), config.vocab_size
    labels = np.random.default_rng(1).integers(0, size, (B, M))
    unused = np.setdiff1d(np.arange(size), batch["input_ids"])
    table = model.encoder.embeddings.token.embeddings
    before = to_numpy(table).copy()
    hidden = model.encoder(batch, positions=batch["masked_lm_positions"])
    head = model.masked_lm
    read = head.norm(head.dense(hidden["sequence_output"]))  # (B, M, D)
    chances = to_numpy(ops.softmax(head(hidden["sequence_output"], table)))
    error = chances - np.eye(size)[labels]  # (B, M, V)
    expected = np.einsum("bmv,bmd->vd", error, to_numpy(read)) / (B * M)
    loss, y = classification_loss(), labels
    if kind == "BertForPreTraining":
        loss = pretraining_losses()
        y = {"mlm_logits": labels, "nsp_logits": np.ones(B, "int32")}
    model.compile(keras.optimizers.SGD(1.0), loss=loss, **A_STEP)
    model.train_on_batch(batch, y)
    moved = to_numpy(table) - before
    np.testing.assert_allclose(moved[unused], -expected[unused], atol=1e-6)
    assert np.abs(expected[unused]).max() > 1e-3


def test_a_masked_lm_has_no_pooler(masked):
    assert masked.encoder.pooler is None
    assert not any("pooler" in name for name in named_tensors(masked))
    skipped = masked.load_report.skipped
    assert {"bert.pooler.dense.weight", "cls.seq_relationship.bias"} <= set(
        skipped
    )


# The loss.


def test_the_joint_loss_is_the_sum_of_both(folder):
    model = bb.BertForPreTraining.from_pretrained(folder)
    rng = np.random.default_rng(0)
    batch = batch_with_slots()
    y = {
        "mlm_logits": rng.integers(0, CONFIG.vocab_size, (B, M)),
        "nsp_logits": rng.integers(0, 2, B),
    }
    weights = {
        "mlm_logits": (np.arange(M) < [[4], [2], [1]]).astype("float32"),
        "nsp_logits": np.ones(B, "float32"),
    }
    model.compile(loss=pretraining_losses(), **A_STEP)
    total = model.test_on_batch(batch, y, weights, return_dict=True)["loss"]
    outputs = to_numpy(model(batch))
    parts = []
    for name, logits in outputs.items():
        shifted = logits - logits.max(axis=-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        picked = np.take_along_axis(logs, y[name][..., None], axis=-1)[..., 0]
        parts.append(-(picked * weights[name]).sum() / weights[name].sum())
    assert float(total) == pytest.approx(sum(parts), abs=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "mean_with_sample_weight"])
def test_an_unused_slot_counts_for_nothing(reduction):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 5)).astype("float32")
    labels = rng.integers(0, 5, (2, 3))
    weights = np.array([[1, 1, 0], [1, 0, 0]], "float32")
    loss = classification_loss(reduction)
    before = float(loss(labels, logits, weights))
    labels[weights == 0] = (labels[weights == 0] + 1) % 5
    logits[weights == 0] = 100.0
    assert float(loss(labels, logits, weights)) == before


# Packed rows.


def test_packed_rows_give_the_same_logits(model):
    batch = batch_with_slots()
    batch["masked_lm_ids"] = np.ones((B, M), "int32")
    batch["masked_lm_weights"] = np.ones((B, M), "float32")
    batch["next_sentence_labels"] = np.array([0, 1, 1], "int32")
    lengths = batch["attention_mask"].sum(axis=1)
    packed, places = pack(batch, max_length=28)
    assert len(packed["input_ids"]) == 2
    inputs = {name: packed[name] for name in MODEL_INPUTS if name in packed}
    expected = to_numpy(model(batch))
    received = to_numpy(model(inputs))
    for number, place in enumerate(places):
        np.testing.assert_allclose(
            received["nsp_logits"][place.row, place.number],
            expected["nsp_logits"][number],
            atol=1e-5,
        )
    del inputs["masked_lm_positions"], batch["masked_lm_positions"]
    every = unpack(to_numpy(model(inputs))["mlm_logits"], places, lengths)
    plain = to_numpy(model(batch))["mlm_logits"]
    for number, rows in enumerate(every):
        expected_rows = plain[number, : lengths[number]]
        np.testing.assert_allclose(rows, expected_rows, atol=1e-5)


# Loading and saving.


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForMaskedLM"])
def test_saved_folder_loads_the_same(kind, folder, tmp_path):
    model = getattr(bb, kind).from_pretrained(folder)
    model.save_pretrained(tmp_path / "saved")
    again = getattr(bb, kind).from_pretrained(tmp_path / "saved")
    assert not again.load_report.drawn
    assert not again.load_report.skipped
    assert again.config.extra["architectures"] == [kind]
    for name, tensor in named_tensors(model).items():
        other = named_tensors(again)[name]
        assert np.array_equal(*to_numpy([tensor, other]))


def test_an_encoder_opens_what_a_model_with_heads_saved(model, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    encoder = bb.BertEncoder.from_pretrained(tmp_path / "saved")
    batch = drawn.draw_batch(CONFIG)
    expected = to_numpy(model.encoder(batch))["pooled_output"]
    received = to_numpy(encoder(batch))["pooled_output"]
    assert np.array_equal(received, expected)


def test_heads_that_a_file_lacks_are_drawn_anew_and_named(tmp_path):
    folder = write_hugging_face(tmp_path, CONFIG)
    report = bb.BertForPreTraining.from_pretrained(folder).load_report
    assert set(report.drawn) == set(head_shapes(CONFIG))


def test_half_a_head_is_refused(tmp_path):
    arrays = drawn.head_arrays(CONFIG)
    del arrays["cls.predictions.transform.dense.bias"]
    folder = write_hugging_face(tmp_path, CONFIG, "bert.", **arrays)
    with pytest.raises(ValueError, match="masked_lm/dense/bias is missing"):
        bb.BertForMaskedLM.from_pretrained(folder)
    bb.BertEncoder.from_pretrained(folder)  # which does not need it


def test_tied_tensors_may_stand_twice_but_must_agree(tmp_path):
    arrays = drawn.hugging_face_arrays(CONFIG, "bert.")
    heads = drawn.head_arrays(CONFIG)
    twice = dict(
        zip(
            TIED,
            (
                arrays["bert.embeddings.word_embeddings.weight"],
                heads["cls.predictions.bias"],
            ),
            strict=True,
        )
    )
    folder = write_pretraining(tmp_path / "same", CONFIG, **twice)
    report = bb.BertForMaskedLM.from_pretrained(folder).load_report
    assert set(twice) <= set(report.skipped)
    name = "cls.predictions.decoder.weight"
    twice[name] = twice[name] + 1
    folder = write_pretraining(tmp_path / "other", CONFIG, **twice)
    with pytest.raises(ValueError, match="must be the same as"):
        bb.BertForMaskedLM.from_pretrained(folder)


def test_a_bias_that_the_file_holds_in_the_decoder_alone_is_read(tmp_path):
    heads = drawn.head_arrays(CONFIG)
    bias = heads.pop("cls.predictions.bias")
    heads["cls.predictions.decoder.bias"] = bias
    folder = write_hugging_face(tmp_path, CONFIG, "bert.", **heads)
    model = bb.BertForMaskedLM.from_pretrained(folder)
    assert np.array_equal(*to_numpy([model.masked_lm.bias, bias]))


def test_google_heads_are_read(tmp_path):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    heads = drawn.head_arrays(CONFIG)
    more = {}
    for names in head_names():
        if names.hugging_face not in heads:
            continue  # of a task
        array = heads[names.hugging_face]
        is_plain = (
            names.bertbook.endswith("kernel") and "masked" in names.bertbook
        )
        more[names.google] = array.T if is_plain else array
    write_google(tf, tmp_path / "google", with_adam=False, **more)
    ours = bb.BertForPreTraining.from_pretrained(tmp_path / "google")
    theirs = bb.BertForPreTraining.from_pretrained(
        write_pretraining(tmp_path / "hf", CONFIG)
    )
    batch = drawn.draw_batch(CONFIG)
    first, second = to_numpy(ours(batch)), to_numpy(theirs(batch))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("limit", [None, 20_000])
def test_half_precision_shards_are_saved_and_read_back(limit, model, tmp_path):
    model.save_pretrained(tmp_path, dtype="float16", max_shard_bytes=limit)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert (len(files) > 1) == (limit is not None)
    arrays = [safetensors.numpy.load_file(file) for file in files]
    assert {a.dtype for part in arrays for a in part.values()} == {
        np.dtype("float16")
    }
    again = bb.BertForPreTraining.from_pretrained(tmp_path)
    for name, tensor in named_tensors(model).items():
        first, second = to_numpy([tensor, named_tensors(again)[name]])
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-6)
    model.save_pretrained(tmp_path)  # and whole again: no stale file stays
    assert [p.name for p in tmp_path.glob("*.safetensors*")] == [
        "model.safetensors"
    ]


def test_keras_own_files_load_the_same(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    batch = batch_with_slots()
    first, second = to_numpy(model(batch)), to_numpy(again(batch))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


# Bad input.


def test_bad_positions_of_masked_tokens_are_refused(model):
    for name, value, message in (
        ("masked_lm_positions", [[0, 23]] * B, "below the length of the batch"),
        ("masked_lm_positions", [[0, -1]] * B, "masked_lm_positions"),
        ("masked_lm_positions", [0, 1, 2], "must have shape"),
        ("masked_lm_positions", [[0.0]] * B, "must hold integers"),
        ("cls_positions", [[0]], "must have shape"),
        ("position_ids", [[29] * S] * B, "max_position_embeddings"),
    ):
        batch = drawn.draw_batch(CONFIG) | {name: np.array(value)}
        with pytest.raises(ValueError, match=message):
            model(batch)


def test_another_stored_format_is_refused(model, tmp_path):
    for dtype in ("float64", "bfloat16", None):
        with pytest.raises(ValueError, match="`dtype` must be"):
            model.save_pretrained(tmp_path, dtype=dtype)


def test_a_value_that_float16_cannot_hold_is_refused(folder, tmp_path):
    model = bb.BertForPreTraining.from_pretrained(folder)
    model.next_sentence.bias.assign([0.0, 1e6])
    with pytest.raises(ValueError, match="next_sentence/bias"):
        model.save_pretrained(tmp_path, dtype="float16")
    assert not (tmp_path / "model.safetensors").exists()
