"""What cannot be written on from is refused, with what was received."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.generate import (
    beam_search,
    checked_inputs,
    checked_seeds,
    count_pieces,
    greedy,
    sample,
)
from bertbook.decoder.seq2seq import Seq2SeqTransformer
from tests.helpers import decoders
from tests.helpers.decoders import MODELS, B, S, draw_given
from tests.helpers.models import to_numpy
from tests.helpers.toys import TOY, toy_config

pytestmark = pytest.mark.usefixtures("plain_graphs")


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_a_max_length_without_positions_is_refused(model):
    message = r"`max_length` must be an integer in \[1, 29\].*Received: "
    for max_length in (0, -1, 30, 2.0, None, True):
        for search in (greedy, sample, beam_search):
            with pytest.raises(ValueError, match=f"{message}{max_length}"):
                search(model, draw_given(), max_length)
        with pytest.raises(ValueError, match=f"{message}{max_length}"):
            bb.generate(model, ["a"], max_length)


def test_an_end_token_that_is_not_in_the_vocabulary_is_refused(model):
    message = r"`end_token_id` must be an id .*\[0, 3[34]\).*Received: "
    for end in (-1, 34, 1.0, "[SEP]"):
        for search in (greedy, sample, beam_search):
            with pytest.raises(ValueError, match=message):
                search(model, draw_given(), 5, end_token_id=end)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "`temperature` must be .* above 0.*Received: 0"),
        ({"temperature": -0.5}, "`temperature` must be .*Received: -0.5"),
        ({"temperature": float("inf")}, "`temperature` must .*Received: inf"),
        ({"temperature": float("nan")}, "`temperature` must .*Received: nan"),
        ({"temperature": 10**400}, "`temperature` must .*Received: 1000"),
        ({"temperature": "hot"}, "`temperature` must .*Received: 'hot'"),
        ({"top_k": 0}, r"`top_k` must be None or .*\[1, 3.\]. Received: 0"),
        ({"top_k": 35}, r"`top_k` must be None or .* Received: 35"),
        ({"top_k": 2.0}, r"`top_k` must be None or .* Received: 2.0"),
        ({"top_p": 0.0}, r"`top_p` must be in \(0, 1\]. Received: 0.0"),
        ({"top_p": 1.1}, r"`top_p` must be in \(0, 1\]. Received: 1.1"),
        ({"top_p": 10**400}, r"`top_p` must be in \(0, 1\]. Received: 10000"),
        ({"top_p": None}, r"`top_p` must be in \(0, 1\]. Received: None"),
        ({"seed": -1}, "`seed` must be an integer >= 0, or 3 .*Received: -1"),
        ({"seed": [1, 2]}, r"`seed` must be .* or 3 .*Received: \[1, 2\]"),
        ({"seed": 0.5}, "`seed` must be an integer .*Received: 0.5"),
    ],
)
def test_sampling_options_out_of_range_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        sample(model, draw_given(), 5, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_width": 0}, r"`beam_width` must be .*\[1, 3.\].*Received: 0"),
        ({"beam_width": 35}, "no more than the vocabulary. Received: 35"),
        ({"beam_width": 4.0}, "`beam_width` must be .*Received: 4.0"),
        ({"length_penalty": -1}, "`length_penalty` must be .* -1"),
        ({"length_penalty": 10**400}, "`length_penalty` must be .* 10000"),
        ({"length_penalty": None}, "`length_penalty` must be .* None"),
    ],
)
def test_beam_options_out_of_range_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        beam_search(model, draw_given(), 5, **options)


def test_a_batch_size_that_is_no_positive_integer_is_refused():
    for size in (0, 2.0, True, "3", None):
        message = f"`batch_size` must be an integer >= 1. Received: {size!r}"
        with pytest.raises(ValueError, match=message):
            bb.generate(decoders.causal(), ["a"], 5, batch_size=size)


def changed(**changes):
    return draw_given() | changes


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({}, KeyError, "must hold `input_ids`"),
        (["a text"], ValueError, "must be a dict.*`generate` takes texts"),
        ({"input_ids": np.zeros((B, 0), "int32")}, ValueError,
         r"at least one token. Received: \(3, 0\)"),
        ({"input_ids": [[5, 6], [7]]}, ValueError, "rows of one length"),
        ({"input_ids": [[5, 99]]}, ValueError, "Received: 99 in row 0"),
        (changed(attention_mask=np.eye(B, S, dtype=int)), ValueError,
         "1 for a text and 0 for the padding behind it.* in row 1"),
        (changed(attention_mask=np.tril(np.ones((B, S), int), -1)), ValueError,
         "at least one token that is not hidden. Received: none in row 0"),
        (changed(attention_mask=np.ones((B, S, S), int)), ValueError,
         r"shape \(B, S\) here. Received: \(3, 7, 7\)"),
        ({"input_ids": np.ones((B, 30), int)}, ValueError,
         "`max_position_embeddings`, 29. Received: 30 tokens"),
    ],
)  # fmt: skip
def test_a_batch_that_is_no_prompt_is_refused(model, batch, error, message):
    with pytest.raises(error, match=message):
        greedy(model, batch, 5)


def test_a_prompt_must_leave_room_and_a_source_need_not():
    batch = {"input_ids": np.ones((B, 25), int)}
    message = "`max_length=5`, a row must hold at most 24 .*: 25 in row 0"
    with pytest.raises(ValueError, match=message):
        greedy(decoders.causal(), batch, 5)
    inputs = checked_inputs(decoders.seq2seq(), batch, 5)
    assert inputs["attention_mask"].tolist() == np.ones((B, 25)).tolist()
    texts = ["a", "a " * 24]
    with pytest.raises(ValueError, match="at most 24 .*: 25 in row 1"):
        bb.generate(decoders.causal(), texts, 5)


def test_an_empty_or_too_long_source_is_refused():
    model = decoders.seq2seq()
    with pytest.raises(ValueError, match="one piece. Received: ' ' in row 1"):
        bb.generate(model, ["a", " "], 5)
    with pytest.raises(ValueError, match="at most 29 .* 30 in row 0"):
        bb.generate(model, ["a " * 28], 5)
    with pytest.raises(ValueError, match="`texts` must hold at least one"):
        bb.generate(model, [], 5)


@pytest.mark.parametrize("search", ["best", []])
def test_an_unknown_search_is_refused(search):
    with pytest.raises(ValueError, match="`search` must be one of greedy, sam"):
        bb.generate(decoders.causal(), ["a"], 5, search=search)


@pytest.mark.parametrize("side", ["tokenizer", "target_tokenizer"])
def test_generate_without_a_tokenizer_is_refused(side, monkeypatch):
    model = decoders.seq2seq()
    monkeypatch.setattr(model, side, None)
    with pytest.raises(ValueError, match="`generate` needs a tokenizer"):
        bb.generate(model, ["a"], 5)


def test_a_tokenizer_with_other_special_ids_is_refused(monkeypatch):
    model = decoders.causal()
    config = decoders.causal_config(eos_token_id=2)
    monkeypatch.setattr(model, "config", config)
    message = r"of the config, \(0, 2, 2\). Received: \(0, 2, 3\)"
    with pytest.raises(ValueError, match=message):
        bb.generate(model, ["a"], 5)
    assert len(TOY) > config.vocab_size


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("causal", {"vocab_size": 32}, "at most 32 .*Received: 33"),
        ("seq2seq", {"vocab_size": 32}, "at most 32 .*Received: 33"),
        ("seq2seq", {"target_vocab_size": 33}, "at most 33 .*Received: 34"),
    ],
)
def test_a_tokenizer_with_more_pieces_than_the_model_is_refused(
    name, sizes, message, monkeypatch
):
    model = MODELS[name]()
    monkeypatch.setattr(model, "config", model.config.replace(**sizes))
    with pytest.raises(ValueError, match=f"must have {message}"):
        bb.generate(model, ["a"], 5)


def test_an_id_without_a_piece_is_refused(model):
    size = model.config.output_size
    assert isinstance(model.read([5], [6, size - 1]), str)
    message = rf"in \[0, {size}\).* Received: .*{size + 1}"
    with pytest.raises(ValueError, match=message):
        model.read([5], np.array([6, size + 1]))


def test_checked_seeds_counts_up_from_a_number_or_takes_a_list():
    assert checked_seeds(5, 3).tolist() == [5, 6, 7]
    assert checked_seeds([2, 2, 9], 3).tolist() == [2, 2, 9]


# Rows of a table that have no piece.


SEARCHES = {
    "greedy": {},
    "sample": {"temperature": 3.0},
    "beams": {"beam_width": 3},
}


@pytest.fixture(scope="module")
def spare():
    """A model with rows that have no piece and that would win everywhere."""
    config = decoders.causal_config(vocab_size=len(decoders.TOKENIZER) + 5)
    model = decoders.draw_weights(CausalLM(config))
    table = to_numpy(model.token.embeddings).copy()
    table[len(decoders.TOKENIZER) :] = 100 * table[3:8]
    model.token.embeddings.assign(table)
    model.tokenizer = decoders.TOKENIZER
    return model


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("search", SEARCHES)
def test_no_id_without_a_piece_is_written(search, use_cache, spare):
    options = {"search": search, "use_cache": use_cache, **SEARCHES[search]}
    for text in bb.generate(spare, ["a b", "c"], 3, **options):
        assert text  # decoded without an error
    with pytest.raises(ValueError, match=r"`top_k` must be .* \[1, 33\]"):
        bb.generate(spare, ["a"], 3, "sample", top_k=34)


def test_the_target_vocabulary_counts_for_an_encoder_decoder():
    config = decoders.seq2seq_config(target_vocab_size=41)
    padded = decoders.draw_weights(Seq2SeqTransformer(config))
    padded.tokenizer = decoders.TOKENIZER
    padded.target_tokenizer = decoders.TARGET_TOKENIZER
    assert count_pieces(padded) == 34
    assert len(bb.generate(padded, ["a b", "c"], 3)) == 2
    padded.target_tokenizer = None
    assert count_pieces(padded) == 41


@pytest.mark.parametrize("other", [None, 5, "mini", "classifier"])
def test_a_model_that_writes_nothing_is_refused(other):
    if other == "classifier":
        other = bb.BertForSequenceClassification(toy_config(), num_labels=2)
    batch = {"input_ids": [[2, 5]]}
    for call in (
        lambda: bb.generate(other, ["a"]),
        lambda: greedy(other, batch, 3),
        lambda: sample(other, batch, 3),
        lambda: beam_search(other, batch, 3),
    ):
        with pytest.raises(ValueError, match="`model` must be a `CausalLM`"):
            call()
