"""Probes, directions and Holm's correction, on values that are known."""

import numpy as np

from bertbook.book.probing import (
    WORDS,
    class_directions,
    holm,
    linear_probe,
    remove_directions,
)
from bertbook.text.tokenizer import Tokenizer


def clusters(seed=0, width=12):
    """Three classes, half of all in the first: vectors and labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), (90, 54, 36))
    means = 4 * rng.standard_normal((3, width))
    return means[labels] + rng.standard_normal((len(labels), width)), labels


def accuracy(vectors, labels):
    weights = linear_probe(vectors, labels)
    guesses = (vectors @ weights[1:] + weights[0]).argmax(axis=-1)
    return (guesses == labels).mean()


def test_no_word_is_in_two_classes_and_most_are_one_token():
    words = [word for text in WORDS.values() for word in text.split()]
    assert len(words) == len(set(words))
    ids = Tokenizer.from_pretrained("mini").ids
    assert np.mean([word in ids for word in words]) > 0.9


def test_probe_without_ridge_is_least_squares():
    vectors, labels = clusters()
    X = np.insert(vectors, 0, 1.0, axis=1)
    expected, *_ = np.linalg.lstsq(X, np.eye(3)[labels], rcond=None)
    np.testing.assert_allclose(
        linear_probe(vectors, labels, ridge=0.0), expected, atol=1e-8
    )
    assert accuracy(vectors, labels) > 0.95


def test_directions_are_orthogonal_and_span_the_means():
    vectors, labels = clusters()
    directions = class_directions(vectors, labels)
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-9)
    means = np.stack([vectors[labels == k].mean(axis=0) for k in range(3)])
    gaps = means - means[0]
    np.testing.assert_allclose(gaps @ directions.T @ directions, gaps)


def test_without_its_directions_no_probe_finds_a_class():
    vectors, labels = clusters()
    directions = class_directions(vectors, labels)
    center = vectors.mean(axis=0)
    less = remove_directions(vectors, directions, center)
    np.testing.assert_allclose(
        less @ directions.T, np.tile(center @ directions.T, (len(less), 1))
    )
    assert abs(accuracy(less, labels) - 0.5) < 1e-9
    batch = vectors.reshape(4, 45, -1)
    np.testing.assert_allclose(
        remove_directions(batch, directions, center).reshape(less.shape), less
    )


def test_holm_by_hand():
    for p_values, expected in (
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.02], [0.02]),
    ):
        np.testing.assert_allclose(holm(p_values), expected)
