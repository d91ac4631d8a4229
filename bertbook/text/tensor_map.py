"""`BatchMap`: raw texts to batches inside of a `tf.data` pipeline."""

from collections.abc import Mapping
from typing import Any

import numpy as np

INPUTS = ("input_ids", "token_type_ids", "attention_mask")
FORMS = (
    "a string, a tuple of two, (text, pair), or a dict with `text` and "
    "perhaps `text_pair`, `label` and `weight`"
)


class BatchMap:
    """A function for `map` of a `tf.data.Dataset` of raw texts.

    Args:
        tokenizer: A `Tokenizer`.
        max_length: Length to cut to; None never cuts.
        padding: "max_length" or "longest".
    """

    def __init__(self, tokenizer: Any, max_length: int | None, padding: str):
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.padding = padding

    def __call__(self, texts: Any, *targets: Any) -> Any:
        """Encodes one element of a data set: a row, or a batch of rows.

        Args:
            texts: A string tensor of shape `()` or `(B,)`; a tuple of two of
                them, for pairs; or a dict of columns.
            *targets: Labels and weights, which come out as they are.

        Returns:
            The batch, a dict of int32 tensors of shape `(S,)` or `(B, S)`;
            with targets a tuple of the batch and them.

        Raises:
            ValueError: The element is something else.
        """
        if isinstance(texts, Mapping):
            targets = (*_targets(texts), *targets)
            names = [n for n in ("text", "text_pair") if n in texts]
            if "text" not in names:
                _refuse(texts)
            texts = tuple(texts[name] for name in names)
        elif not isinstance(texts, tuple):
            texts = (texts,)
        if len(texts) not in (1, 2) or not all(map(_is_text, texts)):
            _refuse(texts)
        if any(map(_is_text, targets)):
            raise ValueError(
                "A second text must be in a tuple with the first, ((text, "
                "pair), label), and labels must be numbers. Received: a "
                "string after the texts."
            )
        batch = self._encode(texts)
        return (batch, *targets) if targets else batch

    def _encode(self, columns: tuple[Any, ...]) -> dict[str, Any]:
        """Encodes tensors of strings, one for each text of a pair."""
        import tensorflow as tf

        shape = columns[0].shape
        arrays = tf.numpy_function(
            self._encode_arrays,
            [tf.convert_to_tensor(column) for column in columns],
            [tf.int32] * len(INPUTS),
        )
        width = self.max_length if self.padding == "max_length" else None
        for array in arrays:
            array.set_shape((*shape, width))
        return dict(zip(INPUTS, arrays, strict=True))

    def _encode_arrays(self, *columns: Any) -> list[np.ndarray]:
        """Encodes NumPy arrays of bytes, of shape `()` or `(B,)`."""
        rows = [
            [_decode(text) for text in np.reshape(column, -1)]
            for column in columns
        ]
        if not rows[0]:
            width = self.max_length if self.padding == "max_length" else 0
            return [np.zeros((0, width or 0), "int32") for _ in INPUTS]
        batch = self.tokenizer(
            *rows, max_length=self.max_length, padding=self.padding
        )
        shape = np.shape(columns[0])
        return [batch[name].reshape((*shape, -1)) for name in INPUTS]


def _targets(columns: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the labels and the weights of a dict of columns."""
    if "weight" in columns and "label" not in columns:
        _refuse(columns)
    return tuple(columns[n] for n in ("label", "weight") if n in columns)


def _is_text(value: Any) -> bool:
    """Returns whether a value is a tensor of strings of rank 0 or 1."""
    dtype = getattr(getattr(value, "dtype", None), "name", None)
    rank = getattr(getattr(value, "shape", None), "rank", None)
    return dtype == "string" and rank in (0, 1)


def _decode(text: bytes) -> str:
    """Returns the characters of a string of TensorFlow."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A text must be UTF-8. Received: {text[:40]!r} ({error})."
        ) from error


def _refuse(element: Any) -> None:
    raise ValueError(
        f"An element must be {FORMS}; strings of rank 0 or 1. "
        f"Received: {element!r}."
    )
