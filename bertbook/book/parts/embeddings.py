"""Input: `embeddings.py` of `mybert`."""

from functools import partial
from typing import Any

import numpy as np

from bertbook.book.parts.part import Part, filled, of_tensorflow
from bertbook.runtime import keras, ops

TABLE = np.array(
    [[3.0, 4.0], [-4.0, 3.0], [6.0, 7.9], [-3.0, -4.0], [9.0, 1.0], [0.3, 0.41]]
)
NEAREST = Part(
    "embeddings",
    "12",
    arguments=(
        (np.array([3.0, 4.0]), TABLE, 3),
        (np.array([-1.0, 0.5]), TABLE, 2),
        (np.array([1.0, 0.0]), TABLE),
    ),
    mistakes=(
        (
            "-(table @ vector) / lengths",
            "-(table @ vector)",
            "long rows win: divide the products by the lengths of the rows",
        ),
        (
            "-(table @ vector) / lengths",
            "(table @ vector) / lengths",
            "the rows that point away come first; the largest cosine must",
        ),
        (
            "[:k]",
            "[:k][::-1]",
            "the best of the k comes last; it must come first",
        ),
        (
            "[:k]",
            "",
            "all rows are returned; it must be the best k",
        ),
        (
            "[:k]",
            "[:5]",
            "`k` is not used",
        ),
        (
            "[:k]",
            "[: k - 1]",
            "one row is missing",
        ),
        (
            "-(table @ vector)",
            "-np.abs(table @ vector)",
            "the sign of the cosine is lost: a row that points away is not "
            "near",
        ),
        (
            "np.argsort(-(table @ vector) / lengths)[:k]",
            "-np.sort(-(table @ vector) / lengths)[:k]",
            "it returns the cosines; it must be the numbers of the rows",
        ),
        (
            "[:k]",
            "[1 : k + 1]",
            "the best row is left out",
        ),
        (
            "np.argsort(-(table @ vector) / lengths)",
            "np.argsort(np.linalg.norm(table - vector, axis=1))",
            "the rows at the smallest distance come first; it must be those "
            "with the largest cosine",
        ),
        (
            "np.argsort(-(table @ vector) / lengths)[:k]",
            "table[np.argsort(-(table @ vector) / lengths)[:k]]",
            "it returns the rows themselves; it must be their numbers",
        ),
    ),
)


IDS = np.array([[3, 1, 6, 1], [5, 0, 2, 2], [1, 4, 4, 0]], "int32")
SEGMENTS = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0]], "int32")


def _has_zeros(vectors: np.ndarray) -> bool:
    """Returns whether about half of the numbers are zero."""
    return 0.3 < float((vectors == 0).mean()) < 0.7


def _vectors(layer_class: Any) -> dict[str, Any] | None:
    """Fills a layer, and runs it as in use and as in training."""
    layer = layer_class(7, 64, 9, 0.5)
    if layer(IDS, SEGMENTS) is None:
        return None
    shapes = filled(layer)
    used, short, trained = (
        ops.convert_to_numpy(vectors)
        for vectors in (
            layer(IDS, SEGMENTS),
            layer(IDS[:, :3], SEGMENTS[:, :3]),
            layer(IDS, SEGMENTS, training=True),
        )
    )
    unknown = keras.Input(batch_shape=(None, None), dtype="int32")
    return {
        "its weights": shapes,
        "their order": list(shapes),
        "its shape where B and S are not known": str(
            layer(unknown, unknown).shape
        ),
        "zeros, one in two": _has_zeros(used),
        "zeros in training, one in two": _has_zeros(trained),
        "the same in training": bool(np.allclose(trained, used)),
        # Dropped at random, they are others every time.
        "the vectors": None if _has_zeros(used) else used,
        "the vectors of shorter rows": None if _has_zeros(used) else short,
    }


EMBEDDINGS = Part(
    "embeddings",
    "13",
    attempt=lambda layer_class: {"": partial(_vectors, layer_class)},
    mistakes=(
        *of_tensorflow(
            "ops.shape(ids)[1]",
            "ids.shape[1]",
            "while Keras trains, S is not known before: take it from "
            "`ops.shape(ids)`",
        ),
        (
            "self.dropout(self.norm(vectors))",
            "self.dropout(self.norm(vectors), training=True)",
            "dropout is at work where nothing is trained; leave `training` to "
            "Keras",
        ),
        (
            "positions = ops.arange(ops.shape(ids)[1])",
            "positions = list(range(5))",
            "`position` takes a tensor, not a list: `ops.arange` makes one",
        ),
        (
            "positions = ops.arange(ops.shape(ids)[1])",
            "positions = ops.shape(ids)[1]",
            "`position` is given one number; it takes the places 0 to S - 1, "
            "as `ops.arange` makes them",
        ),
        (
            "self.token(ids) + self.segment(segments)",
            "self.token(ids)",
            "the vectors of the segments are missing",
        ),
        (
            "vectors = vectors + self.position(positions)",
            "pass",
            "the vectors of the positions are missing",
        ),
        (
            "self.token(ids) + self.segment(segments)",
            "self.segment(segments)",
            "the vectors of the tokens are missing",
        ),
        (
            "self.dropout(self.norm(vectors))",
            "self.dropout(vectors)",
            "`norm` is left out",
        ),
        (
            "self.dropout(self.norm(vectors))",
            "self.norm(vectors)",
            "`dropout` is left out",
        ),
        (
            "self.dropout(self.norm(vectors))",
            "self.norm(self.dropout(vectors))",
            "`dropout` comes after `norm`, not before it",
        ),
        (
            "ops.arange(ops.shape(ids)[1])",
            "ops.arange(ops.shape(ids)[1]) + 1",
            "positions count from 0",
        ),
        (
            "self.position(positions)",
            "self.position(ids)",
            "the position is where a token stands, not its id",
        ),
        (
            "self.position(positions)",
            "self.position(segments)",
            "the position is where a token stands, not its segment",
        ),
        (
            "vectors = vectors + self.position(positions)",
            "vectors = vectors + 0 * ids[..., None] + "
            "self.position(ops.zeros_like(ids))",
            "every token gets the vector of position 0",
        ),
        (
            "ops.shape(ids)[1]",
            "ops.shape(ids)[0]",
            "`ids` is (B, S): positions count along S, axis 1",
        ),
        (
            "vectors = vectors + self.position(positions)",
            "vectors = self.norm(vectors) + self.position(positions)",
            "`norm` comes once, after the sum of all three",
        ),
        (
            "vectors = self.token(ids) + self.segment(segments)"
            "  # (B, S, D)\n"
            "        vectors = vectors + self.position(positions)\n"
            "        return self.dropout(self.norm(vectors))",
            "vectors = self.norm(self.token(ids))\n"
            "        vectors += self.norm(self.segment(segments))\n"
            "        vectors += self.norm(self.position(positions))\n"
            "        return self.dropout(vectors)",
            "`norm` takes the sum, not each term",
        ),
        (
            "vectors = self.token(ids) + self.segment(segments)"
            "  # (B, S, D)\n"
            "        vectors = vectors + self.position(positions)\n",
            "vectors = self.token(ids) * self.segment(segments)\n"
            "        vectors = vectors * self.position(positions)\n",
            "the three are multiplied; add them",
        ),
        (
            "self.token(ids) + self.segment(segments)",
            "self.token(ids) * self.segment(segments)",
            "token and segment are multiplied; add them",
        ),
        (
            "vectors = vectors + self.position(positions)",
            "vectors = vectors * self.position(positions)",
            "the position is multiplied; add it",
        ),
    ),
)
