"""Incremental decoding: one token at a time, with a cache and without.

Each class has `start`, which reads a batch, and `step`, which feeds one token a
row and returns logits for the next. From step to step goes the history, which
grows with every token. The constants stay the same.

Differences: none; the papers do not say how they decode.
"""

from bertbook.decoder.blocks import causal_mask, empty_cache
from bertbook.decoder.prompts import read_prompts
from bertbook.model.attention import visible_keys
from bertbook.runtime import ops


class CausalSteps:
    """Continues prompts; keys and values of earlier tokens are kept.

    Args:
        model: A `CausalLM`.
    """

    def __init__(self, model):
        self.model = model

    def start(self, batch, room):
        """Reads prompts, and makes room for what follows them.

        Args:
            batch: `input_ids` and perhaps `attention_mask`, `(B, P)`: prompts,
                padded on the right.
            room: How many tokens will be fed.

        Returns:
            What to feed first, the last token of every prompt, `(B,)`; the slot
            where it belongs, P; the history, keys and values of every layer;
            and the constants, a dict.
        """
        token, visible, shift = read_prompts(batch, room)
        rows, length = ops.shape(batch["input_ids"])
        total = length + room
        caches = _empty_caches(self.model, self.model.blocks, rows, total)
        if length > 1:
            mask = causal_mask(length, total)
            mask = ops.logical_and(mask, visible_keys(visible))
            hidden = self.model.embed(batch["input_ids"])
            _, caches = self._advance(hidden, mask, caches, 0)
        return token, length, caches, {"visible": visible, "shift": shift}

    def step(self, token, slot, history, constants):
        """Feeds one token a row.

        Args:
            token: Integer tensor of shape `(B,)`.
            slot: Where it belongs: at first as `start` says, then one more
                each time.
            history: Keys and values of every layer.
            constants: As `start` returned it.

        Returns:
            Logits for the next token, `(B, V)`, and the longer history.
        """
        visible = constants["visible"]  # (B, P + room)
        mask = causal_mask(1, visible.shape[1], first=slot)
        mask = ops.logical_and(mask, visible_keys(visible))  # (B, 1, 1, ...)
        places = slot + constants["shift"]  # (B,)
        hidden = self.model.embed(token[:, None], places[:, None])
        hidden, history = self._advance(hidden, mask, history, slot)
        hidden = self.model.final_norm(hidden)  # (B, 1, D)
        return self.model.score(hidden)[:, 0], history

    def _advance(self, hidden, mask, caches, slot):
        """Runs the blocks on new tokens, and returns the longer caches."""
        longer = []
        for block, cache in zip(self.model.blocks, caches, strict=True):
            hidden, _, cache = block(hidden, mask, cache=cache, slot=slot)
            longer.append(cache)
        return hidden, longer


class UncachedCausalSteps:
    """Continues prompts, and reads all tokens again for each new one.

    Args:
        model: A `CausalLM`.
    """

    def __init__(self, model):
        self.model = model

    def start(self, batch, room):
        """As `CausalSteps.start`; the history is all ids, `(B, P + room)`."""
        token, visible, shift = read_prompts(batch, room)
        ids = ops.cast(batch["input_ids"], "int32")
        length = ids.shape[1]
        within = ops.broadcast_to(ops.arange(length), ops.shape(ids))
        behind = shift[:, None] + ops.arange(length, length + room)
        constants = {
            "attention_mask": visible,
            "position_ids": ops.concatenate([within, behind], axis=1),
        }
        return token, length, ops.pad(ids, ((0, 0), (0, room))), constants

    def step(self, token, slot, history, constants):
        """As `CausalSteps.step`."""
        ids = ops.slice_update(history, (0, slot), token[:, None])
        places = ops.zeros_like(token)[:, None] + slot  # (B, 1)
        logits = self.model.call({"input_ids": ids, **constants}, places)
        return logits[:, 0], ids


class Seq2SeqSteps:
    """Writes targets; keys and values of earlier tokens are kept.

    Those of the source are made once.

    Args:
        model: A `Seq2SeqTransformer`.
    """

    def __init__(self, model):
        self.model = model

    def start(self, batch, room):
        """Reads sources, and makes room for their targets.

        Args:
            batch: `input_ids` and perhaps `attention_mask`, `(B, S)`.
            room: How many tokens will be fed.

        Returns:
            What to feed first, the start token, `(B,)`; the slot where it
            belongs, 0; the history, keys and values of every layer; and the
            constants, a dict.
        """
        encoded, _ = self.model.encode(batch)
        blocks = self.model.decoder_blocks
        constants = {
            "sources": [b.cross_attention.read_source(encoded) for b in blocks],
            "attention_mask": _source_mask(batch),
        }
        caches = _empty_caches(self.model, blocks, ops.shape(encoded)[0], room)
        return _start_tokens(self.model, encoded), 0, caches, constants

    def step(self, token, slot, history, constants):
        """Feeds one token a row; as `CausalSteps.step`."""
        mask = causal_mask(1, history[0][0].shape[2], first=slot)
        source_mask = visible_keys(constants["attention_mask"])
        place = ops.reshape(slot, (1, 1))
        hidden = self.model.target_embeddings(token[:, None], place)
        longer = []
        for block, source, cache in zip(
            self.model.decoder_blocks,
            constants["sources"],
            history,
            strict=True,
        ):
            hidden, _, cache = block(
                hidden, mask, source, source_mask, cache=cache, slot=slot
            )
            longer.append(cache)
        return self.model.score(hidden)[:, 0], longer


class UncachedSeq2SeqSteps:
    """Writes targets, and reads all of a target again for each new token.

    Args:
        model: A `Seq2SeqTransformer`.
    """

    def __init__(self, model):
        self.model = model

    def start(self, batch, room):
        """As `Seq2SeqSteps.start`; the history is all ids, `(B, room)`."""
        encoded, _ = self.model.encode(batch)
        constants = {"encoded": encoded, "attention_mask": _source_mask(batch)}
        ids = ops.zeros((ops.shape(encoded)[0], room), "int32")
        return _start_tokens(self.model, encoded), 0, ids, constants

    def step(self, token, slot, history, constants):
        """As `Seq2SeqSteps.step`."""
        ids = ops.slice_update(history, (0, slot), token[:, None])
        places = ops.zeros_like(token)[:, None] + slot  # (B, 1)
        batch = {"decoder_input_ids": ids}
        batch["attention_mask"] = constants["attention_mask"]
        logits, _ = self.model.decode(batch, constants["encoded"], places)
        return logits[:, 0], ids


def _empty_caches(model, blocks, rows, length):
    """Returns an empty cache for every block."""
    dtype = model.compute_dtype
    return [empty_cache(model.config, rows, length, dtype) for _ in blocks]


def _start_tokens(model, encoded):
    """Returns the start token once a row."""
    return ops.full(
        (ops.shape(encoded)[0],), model.config.bos_token_id, "int32"
    )


def _source_mask(batch):
    """Returns which source tokens are real, all where nothing says."""
    ids = batch["input_ids"]
    return batch.get("attention_mask", ops.ones_like(ids))
