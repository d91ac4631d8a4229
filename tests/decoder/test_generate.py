"""Searches: the cache, the batch and a beam of one change nothing."""

from functools import lru_cache

import numpy as np
import pytest

import bertbook as bb
from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.generate import beam_search, greedy, sample
from bertbook.decoder.seq2seq import Seq2SeqTransformer
from bertbook.runtime import keras, ops
from bertbook.training.losses import classification_loss
from tests.helpers import decoders
from tests.helpers.decoders import BOS, EOS, PAD, B, S, causal_config
from tests.helpers.models import to_numpy
from tests.helpers.searches import beams_by_loops, check_row, log_softmax

pytestmark = pytest.mark.usefixtures("plain_graphs")
LENGTH = 6
SEARCHES = {
    "greedy": lambda *args, **kw: greedy(*args, LENGTH, **kw),
    "beams": lambda *args, **kw: beam_search(*args, LENGTH, **kw).ids,
}
SYMBOLS = np.arange(4, 12)  # the other ids are special


def draw_symbols(rows, seed):
    return (
        np.random.default_rng(seed).choice(SYMBOLS, (rows, 4)).astype("int32")
    )


def train_to_reverse(steps=150):
    """Trains a small model to write four symbols in reverse order."""
    keras.utils.set_random_seed(0)
    config = decoders.seq2seq_config(
        vocab_size=12,
        target_vocab_size=None,
        hidden_size=32,
        num_attention_heads=2,
        num_decoder_layers=1,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        initializer_range=0.1,
    )
    model = Seq2SeqTransformer(config)
    source = draw_symbols(steps * 64, seed=0)
    target = np.pad(source[:, ::-1], ((0, 0), (1, 1)), constant_values=EOS)
    target[:, 0] = BOS
    adam = keras.optimizers.Adam(3e-3)
    model.compile(adam, classification_loss())
    batch = {"input_ids": source, "decoder_input_ids": target[:, :-1]}
    model.fit(batch, target[:, 1:], batch_size=64, verbose=0)
    last = {name: array[-64:] for name, array in batch.items()}
    loss = model.evaluate(last, target[-64:, 1:], batch_size=64, verbose=0)
    return model, loss


def share_reversed(model):
    """Returns how often new sources are written in reverse order."""
    source = draw_symbols(64, seed=1)
    written = greedy(model, {"input_ids": source}, 5)
    return (written[:, :4] == source[:, ::-1]).all(axis=1).mean()


trained = lru_cache(train_to_reverse)
MODELS = {"causal": decoders.causal, "seq2seq": lambda: trained()[0]}


def draw_given():
    """Draws prompts or sources that every model knows."""
    given = decoders.draw_given()
    ids = SYMBOLS[given["input_ids"] % len(SYMBOLS)].astype("int32")
    return {**given, "input_ids": ids * given["attention_mask"]}


def pairs():
    """Every model with every search."""
    return [(name, search) for name in MODELS for search in SEARCHES]


# Definition.


@pytest.mark.parametrize("name", MODELS)
def test_greedy_is_a_loop_over_calls_of_the_model(name):
    model, given = MODELS[name](), draw_given()
    received = greedy(model, given, LENGTH)
    assert received.dtype == np.int32
    for row in range(B):
        real = given["attention_mask"][row].sum()
        source = given["input_ids"][row : row + 1]
        ids = np.zeros((1, S + LENGTH), "int32")
        batch, start = {"input_ids": ids}, real
        ids[:, :real] = source[:, :real]
        if name == "seq2seq":
            ids = np.full((1, LENGTH), BOS, "int32")
            start = 1
            batch = {
                "input_ids": source,
                "attention_mask": given["attention_mask"][row : row + 1],
                "decoder_input_ids": ids,
            }
        expected = []
        while len(expected) < LENGTH and EOS not in expected:
            place = start + len(expected)
            token = model.compute_on_batch(batch)[0, place - 1].argmax()
            expected.append(int(token))
            if place < ids.shape[1]:
                ids[0, place] = token
        padding = [PAD] * (LENGTH - len(expected))
        assert received[row].tolist() == expected + padding


def test_beams_are_those_of_loops_over_calls_of_the_model():
    model, given = decoders.causal(), draw_given()
    found = beam_search(model, given, LENGTH, 3)
    for row in range(B):
        real = given["attention_mask"][row].sum()

        def next_logs(new, row=row, real=real):
            ids = np.zeros((1, S + LENGTH), "int32")
            ids[0, :real] = given["input_ids"][row, :real]
            ids[0, real : real + len(new)] = new
            logits = model.compute_on_batch({"input_ids": ids})
            return log_softmax(logits[0, real + len(new) - 1].astype("float64"))

        expected = beams_by_loops(next_logs, LENGTH, 3, 0.6)
        check_row(found.ids[row], found.scores[row], expected)


# Properties.


def test_the_cache_changes_no_token():
    for name, search in pairs():
        model, given = MODELS[name](), draw_given()
        cached = SEARCHES[search](model, given)
        uncached = SEARCHES[search](model, given, use_cache=False)
        assert len(np.unique(cached)) > 3
        np.testing.assert_array_equal(cached, uncached)


@pytest.mark.any_backend
def test_a_beam_of_one_is_greedy():
    model, given = decoders.causal(), draw_given()
    one = beam_search(model, given, LENGTH, beam_width=1)
    np.testing.assert_array_equal(one.ids[:, 0], greedy(model, given, LENGTH))
    assert one.scores.shape == (B, 1)


@pytest.mark.parametrize(("name", "search"), pairs())
def test_a_batch_gives_what_its_rows_give_alone(name, search):
    """A row of beams is thrice the same: in this shape they are compiled."""
    model, given = MODELS[name](), draw_given()
    together = SEARCHES[search](model, given)
    count = 1 if search == "greedy" else B
    for row in range(B):
        one = {key: array[[row] * count] for key, array in given.items()}
        alone = SEARCHES[search](model, one)
        for same in alone:
            np.testing.assert_array_equal(together[row], same)


def test_scores_are_log_probabilities_over_lengths():
    model, given = trained()[0], draw_given()
    found = beam_search(model, given, LENGTH, length_penalty=0.6)
    assert (np.diff(found.scores[:, :2]) <= 0).all()
    ids = found.ids[:, 0]
    target = np.concatenate([np.full((B, 1), BOS), ids[:, :-1]], axis=1)
    logits = model({**given, "decoder_input_ids": target.astype("int32")})
    logs = to_numpy(ops.log_softmax(logits, axis=-1))
    picked = np.take_along_axis(logs, ids[:, :, None], axis=-1)[:, :, 0]
    ends = np.argmax(ids == EOS, axis=1)
    lengths = np.where((ids == EOS).any(axis=1), ends + 1, LENGTH)
    used = np.arange(LENGTH) < lengths[:, None]
    expected = (picked * used).sum(axis=1) / ((5 + lengths) / 6) ** 0.6
    np.testing.assert_allclose(found.scores[:, 0], expected, atol=1e-5)


def test_sampling_repeats_itself_and_changes_with_the_seed():
    model, given = decoders.causal(), draw_given()
    options = {"temperature": 2.0, "top_k": 9, "top_p": 0.9}
    first = sample(model, given, LENGTH, **options)
    np.testing.assert_array_equal(
        first, sample(model, given, LENGTH, **options, seed=[0, 1, 2])
    )
    other = sample(model, given, LENGTH, **options, seed=5)
    assert (first != other).any()
    turned = sample(model, given, LENGTH, **options, seed=[5, 1, 2])
    np.testing.assert_array_equal(turned[0], other[0])
    np.testing.assert_array_equal(turned[1:], first[1:])


@pytest.mark.any_backend
@pytest.mark.parametrize("use_cache", [True, False])
def test_searches_take_numpy_scalars(use_cache):
    model = decoders.draw_weights(CausalLM(causal_config(num_hidden_layers=1)))
    batch, whole = draw_given(), np.int64
    options = {"temperature": 0.5, "top_k": 3, "top_p": 0.75}
    of_numpy = dict(
        zip(options, map(np.asarray, options.values()), strict=True)
    )
    of_numpy = {name: array[()] for name, array in of_numpy.items()}
    for search, numbers, arrays in (
        (greedy, {}, {}),
        (sample, options, of_numpy),
        (beam_search, {"beam_width": 2}, {"beam_width": whole(2)}),
    ):
        received = search(
            model, batch, whole(LENGTH), use_cache=use_cache, **arrays
        )
        expected = search(model, batch, LENGTH, use_cache=use_cache, **numbers)
        for ours, theirs in zip(received, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.any_backend
def test_generate_takes_numpy_scalars():
    model = decoders.seq2seq()
    texts = ["a b", "c", "d e f"]
    expected = bb.generate(model, texts, LENGTH, "beams", 2)
    received = bb.generate(
        model,
        texts,
        np.int64(LENGTH),
        "beams",
        np.int32(2),
        length_penalty=np.float64(0.6),
    )
    assert received == expected


@pytest.mark.any_backend
def test_sampling_with_the_smallest_options_is_greedy():
    model, given = decoders.causal(), draw_given()
    expected = greedy(model, given, LENGTH)
    for options in ({"top_p": 1e-50}, {"temperature": 1e-38}):
        for seed in range(3):
            received = sample(model, given, LENGTH, seed=seed, **options)
            np.testing.assert_array_equal(received, expected)


@pytest.mark.any_backend
@pytest.mark.parametrize("name", MODELS)
def test_an_attention_mask_may_have_any_dtype(name):
    model, given = MODELS[name](), draw_given()
    expected = greedy(model, given, LENGTH)
    for dtype in ("float32", "bool", "uint8"):
        mask = given["attention_mask"].astype(dtype)
        received = greedy(model, given | {"attention_mask": mask}, LENGTH)
        np.testing.assert_array_equal(received, expected)


def test_another_end_token_ends_earlier():
    model, given = decoders.causal(), draw_given()
    plain = greedy(model, given, LENGTH)
    end = int(plain[0, 2])
    received = greedy(model, given, LENGTH, end_token_id=end)
    for row in range(B):
        place = np.flatnonzero(plain[row] == end)
        stop = place[0] + 1 if len(place) else LENGTH
        assert received[row, :stop].tolist() == plain[row, :stop].tolist()
        assert (received[row, stop:] == PAD).all()


def test_new_weights_are_used_without_compiling_anew(monkeypatch):
    keras.utils.set_random_seed(0)
    models = [
        decoders.draw_weights(CausalLM(causal_config(num_hidden_layers=1)), s)
        for s in (0.6, 0.3)
    ]
    expected = greedy(models[1], draw_given(), 5)
    before = greedy(models[0], draw_given(), 5)
    models[0].set_weights(models[1].get_weights())
    monkeypatch.setattr(CausalLM, "steps", None)  # what tracing would ask for
    np.testing.assert_array_equal(greedy(models[0], draw_given(), 5), expected)
    assert (before != expected).any()


@pytest.mark.parametrize(
    ("name", "search"), [("seq2seq", greedy), ("causal", beam_search)]
)
def test_xla_changes_no_token(name, search, monkeypatch):
    model, given = getattr(decoders, name)(), decoders.draw_given()
    plain = search(model, given, LENGTH)
    monkeypatch.setattr("bertbook.runtime.COMPILE", True)
    compiled = type(model)(model.config)
    compiled.set_weights(model.get_weights())
    received = search(compiled, given, LENGTH)
    if search is beam_search:
        np.testing.assert_allclose(plain.scores, received.scores, atol=1e-5)
        plain, received = plain.ids, received.ids
    np.testing.assert_array_equal(plain, received)


def test_half_precision_writes_mostly_the_same_tokens():
    model = decoders.causal()
    half = CausalLM(model.config, dtype="mixed_bfloat16")
    half.set_weights(model.get_weights())
    written = greedy(half, draw_given(), LENGTH)
    assert written.shape == (B, LENGTH)
    assert (written == greedy(model, draw_given(), LENGTH)).mean() > 0.3


# Texts.


@pytest.mark.any_backend
def test_generate_keeps_the_order_and_ignores_the_batch_size():
    model = decoders.causal()
    texts = ["a b c d e", "f", "g h i", "", "k l"]
    options = {"search": "sample", "top_k": 5, "seed": 3}
    together = bb.generate(model, texts, 6, batch_size=4, **options)
    assert together == bb.generate(model, texts, 6, batch_size=2, **options)
    for text, written in zip(texts, together, strict=True):
        assert written.startswith(text)
    assert sum(map(len, together)) > sum(map(len, texts))


def test_generate_decodes_the_ids_of_a_search_on_the_sources():
    model = decoders.seq2seq()
    texts = ["a b c", "d", "e f g h i"]
    batch = model.prompts(texts)
    assert list(batch) == ["input_ids", "attention_mask"]
    cls, sep = model.tokenizer.cls_token_id, model.tokenizer.sep_token_id
    assert batch["input_ids"][1].tolist() == [cls, 8, sep, 0, 0, 0, 0]
    for search in ("greedy", "beams"):
        written = bb.generate(model, texts, LENGTH, search=search)
        wide = {
            name: np.pad(array, ((0, 0), (0, 16 - array.shape[1])))
            for name, array in batch.items()
        }
        ids = SEARCHES[search](model, wide)
        ids = ids[:, 0] if search == "beams" else ids
        assert written == [model.target_tokenizer.decode(row) for row in ids]


def test_prompts_are_the_start_token_and_pieces():
    batch = decoders.causal().prompts(["a bs", ""])
    assert batch["input_ids"].tolist() == [[BOS, 5, 6, 31], [BOS, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]
    assert batch["input_ids"].dtype == np.int32


# The mask, and what happens without it.


def test_with_the_mask_training_and_writing_both_work():
    model, loss = trained()
    exact = share_reversed(model)
    print(f"loss {loss:.3f}, exact {exact:.2f}")
    assert loss < 0.15
    assert exact > 0.95


@pytest.mark.any_backend
def test_without_the_mask_the_loss_falls_and_writing_fails(monkeypatch):
    def look_ahead(ids, attention_mask=None):
        return ops.ones((1, 1, ids.shape[1], ids.shape[1]), "bool")

    monkeypatch.setattr("bertbook.decoder.seq2seq.decoder_mask", look_ahead)
    model, loss = train_to_reverse()
    exact = share_reversed(model)
    print(f"loss {loss:.3f}, exact {exact:.2f}")
    assert loss < 0.15
    assert exact < 0.1
