"""Greedy search, sampling and beam search.

Differences: a drawn token takes one random number, made beforehand, so that
both backends draw alike. Of the beam search of Wu et al. (2016) the coverage
penalty is left out, and a row is done when as many texts have ended as the beam
is wide; theirs also drops texts whose score is far below the best.
"""

from typing import Any, NamedTuple

from bertbook.runtime import keras, ops


def go_on(steps, batch, max_length, pick, end_token_id, pad_token_id):
    """Feeds a token, picks the next, and so on, all rows at once.

    Args:
        steps: What `steps` of a model returned.
        batch: Prompts or sources: `input_ids` and perhaps `attention_mask`.
        max_length: Most tokens a row.
        pick: A function of logits, `(B, V)`, and the number of the token,
            from 0, that returns ids, `(B,)`.
        end_token_id: The token after which a row has ended.
        pad_token_id: What follows it.

    Returns:
        The new ids, `(B, max_length)` int32.
    """
    token, first, history, constants = steps.start(batch, max_length)
    rows = ops.shape(token)[0]
    ids = ops.full((rows, max_length), pad_token_id, "int32")
    ended = ops.zeros((rows,), "bool")

    def is_needed(number, token, ended, ids, history):
        return ops.logical_not(ops.all(ended))

    def add_token(number, token, ended, ids, history):
        logits, history = steps.step(token, first + number, history, constants)
        picked = ops.cast(pick(logits, number), "int32")
        token = ops.where(ended, pad_token_id, picked)
        ids = ops.slice_update(ids, (0, number), token[:, None])
        ended = ops.logical_or(ended, token == end_token_id)
        return number + 1, token, ended, ids, history

    number = ops.zeros((), "int32")
    *_, ids, _ = ops.while_loop(
        is_needed,
        add_token,
        (number, token, ended, ids, history),
        maximum_iterations=max_length,
    )
    return ids


def likeliest(logits, number):
    """Returns the token with the largest logit, `(B,)`.

    Args:
        logits: Float tensor of shape `(B, V)`.
        number: Not read.
    """
    return ops.argmax(logits, axis=-1)


def candidates(logits, temperature=1.0, top_k=None, top_p=1.0):
    """Returns the tokens that may be drawn, and their probabilities.

    First `top_k` leaves the likeliest k, then `top_p` the fewest of them that
    together have that probability.

    Source: Fan et al. (2018), section 5.4, for k; Holtzman et al. (2020),
    section 3.1, for p.

    Args:
        logits: Float tensor of shape `(B, V)`.
        temperature: What logits are divided by: below 1 the likely tokens
            gain, above 1 the others.
        top_k: How many tokens at most; None for all V.
        top_p: In (0, 1].

    Returns:
        Ids, the likeliest first, and probabilities that sum to 1, 0 for those
        that are left out: `(B, K)`, K = `top_k` or V.
    """
    logits = ops.cast(logits, "float32") / temperature
    count = logits.shape[-1] if top_k is None else top_k
    weights, ids = ops.top_k(ops.softmax(logits, axis=-1), count)
    weights = weights / ops.sum(weights, axis=-1, keepdims=True)
    likelier = ops.cumsum(weights, axis=-1) - weights  # the sum before each
    weights = ops.where(likelier < top_p, weights, 0.0)
    return ids, weights / ops.sum(weights, axis=-1, keepdims=True)


def draw(ids, probabilities, numbers):
    """Draws one token a row.

    Args:
        ids: Integer tensor of shape `(B, K)`.
        probabilities: Float tensor of shape `(B, K)`, the largest first.
        numbers: Float tensor of shape `(B,)`, uniform in [0, 1).

    Returns:
        Integer tensor of shape `(B,)`.
    """
    reached = ops.cumsum(probabilities, axis=-1) <= numbers[:, None]
    place = ops.sum(ops.cast(reached, "int32"), axis=-1)
    last = ops.sum(ops.cast(probabilities > 0, "int32"), axis=-1) - 1
    place = ops.minimum(place, last)  # a sum may end a little below 1
    return ops.take_along_axis(ids, place[:, None], axis=-1)[:, 0]


NEVER = float("-inf")  # the score of a text that is not there


class Beams(NamedTuple):
    """The texts that were found, the best first.

    Attributes:
        ids: The new tokens, `(B, W, max_length)` int32, padded.
        scores: Their `length_score`, `(B, W)` float32.
    """

    ids: Any
    scores: Any


class _Search(NamedTuple):
    """The state of a search: W texts a row that go on, and W that ended.

    Attributes:
        number: How many tokens each has.
        token: The last token of those that go on, `(B W,)`.
        history: Their history as `steps` keeps it.
        ids: Their tokens, `(B, W, max_length)`, the likeliest text first.
        scores: Their log-probabilities, `(B, W)`.
        ended_ids: The tokens of those that ended, the best text first.
        ended_scores: Their `length_score`, `(B, W)`; `NEVER` where there is
            none yet.
    """

    number: Any
    token: Any
    history: Any
    ids: Any
    scores: Any
    ended_ids: Any
    ended_scores: Any


def length_score(log_probability, length, length_penalty):
    """Returns what texts of different length are compared by.

    It is log P divided by ((5 + length) / 6) to the power `length_penalty`.
    With 0 it is log P, which shorter texts win.

    Source: Wu et al. (2016), equation 14, without the coverage penalty.

    Args:
        log_probability: Float tensor, the sum over the tokens of a text.
        length: Number of its tokens, the end token counted.
        length_penalty: The paper's alpha.
    """
    length = ops.cast(length, "float32")
    return log_probability / ((5.0 + length) / 6.0) ** length_penalty


def search_beams(
    steps, batch, max_length, width, length_penalty, end_token_id, pad_token_id
):
    """Keeps the W likeliest texts of every length, all rows at once.

    Source: Wu et al. (2016), section 7.

    Args:
        steps: What `steps` of a model returned.
        batch: Prompts or sources: `input_ids` and perhaps `attention_mask`.
        max_length: Most tokens a text.
        width: W, at most V.
        length_penalty: As in `length_score`.
        end_token_id: The token that ends a text.
        pad_token_id: What follows it.

    Returns:
        `Beams`: texts that ended come first, each kind by its score.
    """
    token, first, history, constants = steps.start(batch, max_length)
    rows = ops.shape(token)[0]
    token, history, constants = keras.tree.map_structure(
        lambda x: ops.repeat(x, width, axis=0), (token, history, constants)
    )  # (B W, ...)
    ids = ops.full((rows, width, max_length), pad_token_id, "int32")
    no_scores = ops.full((rows, width), NEVER, "float32")
    # The W copies of a row are equal at the start, so that one of them counts.
    scores = ops.where(ops.arange(width) == 0, 0.0, no_scores)
    number = ops.zeros((), "int32")
    search = _Search(number, token, history, ids, scores, ids, no_scores)

    def is_needed(*search):
        return ops.logical_not(ops.all(_is_done(_Search(*search))))

    def add_token(*search):
        search = _Search(*search)
        slot = first + search.number
        logits, history = steps.step(
            search.token, slot, search.history, constants
        )
        longer = _longer(search, logits)
        ended = _ended(search, longer, end_token_id, length_penalty)
        return *_going_on(search, longer, history, end_token_id), *ended

    search = ops.while_loop(
        is_needed, add_token, tuple(search), maximum_iterations=max_length
    )
    return _best(_Search(*search), length_penalty)


class _Longer(NamedTuple):
    """The 2 W likeliest texts a row that are one token longer, the best first.

    At most W of them end, because each of W texts can end in one way. So W or
    more go on.

    Attributes:
        ids: `(B, 2 W, max_length)`.
        scores: Their log-probabilities, `(B, 2 W)`.
        token: The new token, `(B, 2 W)`.
        parent: Which of the W texts it continues, `(B, 2 W)`.
    """

    ids: Any
    scores: Any
    token: Any
    parent: Any


def _longer(search, logits):
    """Adds every token to every text, and keeps the best."""
    rows, width, _ = ops.shape(search.ids)
    size = logits.shape[-1]  # V
    steps = ops.log_softmax(ops.cast(logits, "float32"))  # (B W, V)
    totals = search.scores[:, :, None] + ops.reshape(steps, (rows, width, size))
    totals = ops.reshape(totals, (rows, width * size))
    scores, places = ops.top_k(totals, min(2, size) * width)
    token = ops.cast(places % size, "int32")
    parent = ops.cast(places // size, "int32")
    ids = _take(search.ids, parent)
    ids = ops.slice_update(ids, (0, 0, search.number), token[:, :, None])
    return _Longer(ids, scores, token, parent)


def _ended(search, longer, end_token_id, length_penalty):
    """Returns the W best that have ended: ids and scores.

    A text ends only while it is among the W likeliest, and no text is added
    to a row that is done: so a row gives the same alone and among others.
    """
    width = search.scores.shape[1]
    first = ops.arange(longer.scores.shape[1]) < width
    is_new = ops.logical_and(longer.token == end_token_id, first)
    is_open = ops.logical_not(_is_done(search))
    is_new = ops.logical_and(is_new, is_open[:, None])
    new = length_score(longer.scores, search.number + 1, length_penalty)
    scores = [search.ended_scores, ops.where(is_new, new, NEVER)]
    scores, indices = ops.top_k(ops.concatenate(scores, axis=1), width)
    ids = ops.concatenate([search.ended_ids, longer.ids], axis=1)
    return _take(ids, indices), scores


def _going_on(search, longer, history, end_token_id):
    """Returns the W likeliest that have not ended, and their history."""
    rows, width, _ = ops.shape(search.ids)
    going = ops.where(longer.token == end_token_id, NEVER, longer.scores)
    scores, indices = ops.top_k(going, width)
    parent = _take(longer.parent, indices) + width * ops.arange(rows)[:, None]
    parent = ops.reshape(parent, (-1,))  # (B W,)
    history = keras.tree.map_structure(
        lambda x: ops.take(x, parent, axis=0), history
    )
    token = ops.reshape(_take(longer.token, indices), (-1,))
    number = search.number + 1
    return number, token, history, _take(longer.ids, indices), scores


def _best(search, length_penalty):
    """Returns W texts a row: those that ended, then those that did not."""
    width = search.scores.shape[1]
    going = length_score(search.scores, search.number, length_penalty)
    scores = ops.concatenate([search.ended_scores, going], axis=1)
    ids = ops.concatenate([search.ended_ids, search.ids], axis=1)
    ended = ops.sum(ops.cast(search.ended_scores > NEVER, "int32"), axis=1)
    places = ops.broadcast_to(ops.arange(width), ops.shape(search.scores))
    unused = width - ended[:, None]  # places of texts that are not there
    places = places + ops.where(places < ended[:, None], 0, unused)
    return Beams(_take(ids, places), _take(scores, places))


def _is_done(search):
    """Returns whether W texts of a row have ended, `(B,)`."""
    return search.ended_scores[:, -1] > NEVER


def _take(values, places):
    """Takes texts of each row: `(B, X, ...)` at `(B, Y)` is `(B, Y, ...)`."""
    if len(values.shape) > len(places.shape):
        places = places[:, :, None]
    return ops.take_along_axis(values, places, axis=1)
