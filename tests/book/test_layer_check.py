"""A layer of the reader's for one notebook: what is said, and what is used."""

import numpy as np
import pytest

from bertbook.book.layer_check import check_layer
from bertbook.book.workbench import book
from bertbook.runtime import keras

X = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
WEIGHTS = np.array([2.0, 0.0, -1.0])
CASES = ((X,), X), ((X, WEIGHTS), X * WEIGHTS)


class OfTheBook(keras.layers.Layer):
    """What a folded cell holds."""


def made(build, call):
    """Returns a layer class called Scale with these methods."""
    return type("Scale", (keras.layers.Layer,), {"build": build, "call": call})


def ones(layer, shape):
    layer.scale = layer.add_weight((shape[-1],), "ones")


def times(layer, inputs):
    return inputs * layer.scale


def used():
    """Returns what is used where the book's layer has the name Scale."""
    return book(type("Scale", (OfTheBook,), {}))


def test_what_is_right_is_used(capsys):
    mine = made(ones, times)
    check_layer(mine, *CASES)
    assert capsys.readouterr().out == "Scale: right, 2 of 2 checks\n"
    assert used() is mine


def nothing(layer, shape): ...


def no_call(layer, inputs): ...


def drawn(layer, shape):
    layer.scale = layer.add_weight((shape[-1],))


def one(layer, shape):
    layer.scale = layer.add_weight((), "ones")


def forgets(layer, inputs):
    inputs * layer.scale


@pytest.mark.parametrize(
    ("build", "call", "words"),
    [
        (nothing, no_call, "not written yet"),
        (ones, forgets, "is there a `return`?"),
        (drawn, times, "the shape is right; the largest difference"),
        (one, times, "not compatible"),
        (nothing, times, "in your line `return inputs * layer.scale`"),
    ],
)
def test_what_is_wrong_is_said_and_the_books_is_used(
    build, call, words, capsys
):
    check_layer(made(ones, times), *CASES)  # an earlier try that passed
    capsys.readouterr()
    check_layer(made(build, call), *CASES)
    said = capsys.readouterr().out
    assert said.startswith("Scale")
    assert said.count("\n") == 1
    assert words in said
    assert issubclass(used(), OfTheBook)
