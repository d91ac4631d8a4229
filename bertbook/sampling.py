"""Choosing the next token, and going on until every row has ended.

Differences: none. A drawn token takes one random number, made beforehand, so
that both backends draw alike.
"""

from bertbook.runtime import ops


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
    token, first, history, given = steps.start(batch, max_length)
    rows = ops.shape(token)[0]
    ids = ops.full((rows, max_length), pad_token_id, "int32")
    ended = ops.zeros((rows,), "bool")

    def is_needed(number, token, ended, ids, history):
        return ops.logical_not(ops.all(ended))

    def add_token(number, token, ended, ids, history):
        logits, history = steps.step(token, first + number, history, given)
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
