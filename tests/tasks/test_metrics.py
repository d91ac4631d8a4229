"""Metrics against scikit-learn, scipy, and the counts of conlleval."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.tasks.metrics import (
    accuracy,
    entity_f1,
    f1,
    matthews,
    pearson,
    several_labels,
    spearman,
)

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-a-b", "I-a-b")

random_tests = settings(max_examples=100, deadline=None, derandomize=True)


def columns(values):
    """Two lists of one length."""
    pairs = st.lists(st.tuples(values, values), min_size=1, max_size=41)
    return pairs.map(lambda rows: tuple(map(list, zip(*rows, strict=True))))


# Definition.


def test_labels_by_hand():
    labels, guesses = [1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0]
    assert accuracy(labels, guesses) == pytest.approx(5 / 7)
    assert f1(labels, guesses) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert f1(labels, guesses, positive=0) == pytest.approx(6 / 8)
    macro = f1(labels, guesses, average="macro")
    assert macro == pytest.approx((4 / 6 + 6 / 8) / 2)
    tp, fp, fn, tn = 2, 1, 1, 3
    below = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    expected = (tp * tn - fp * fn) / below
    assert matthews(labels, guesses) == pytest.approx(expected)


def test_matthews_where_nothing_or_everything_is_right():
    assert matthews([0, 0, 1, 1], [0, 1, 0, 1]) == 0.0
    assert matthews([0, 1, 1], [0, 1, 1]) == pytest.approx(1.0)
    assert matthews([0, 1, 1], [1, 0, 0]) == pytest.approx(-1.0)


def test_correlations_by_hand():
    x, y = [1.0, 2.0, 4.0, 5.0], [1.0, 3.0, 2.0, 5.0]
    a, b = np.array(x) - 3, np.array(y) - 2.75
    expected = (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum())
    assert pearson(x, y) == pytest.approx(expected)
    assert spearman(x, y) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert spearman(x, np.exp(x)) == pytest.approx(1.0)
    assert pearson(x, np.exp(x)) < 0.95


def test_a_constant_column_has_no_correlation():
    for metric in (pearson, spearman, matthews):
        assert metric([1, 2, 3], [2, 2, 2]) == 0.0
        assert metric([2, 2, 2], [1, 2, 3]) == 0.0
        assert metric([2, 2, 2], [2, 2, 2]) == 0.0


def test_entities_by_hand():
    tags = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "I-LOC"], ["O"]]
    guesses = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "O"], ["I-LOC"]]
    received = entity_f1(tags, guesses)
    assert received == {
        "precision": 1 / 4,
        "recall": 1 / 3,
        "f1": 2 / 7,
        "by_type": {
            "LOC": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 2},
            "PER": {
                "precision": 1 / 2, "recall": 1.0, "f1": 2 / 3, "count": 1
            },
        },
    }  # fmt: skip
    strict = entity_f1(tags, guesses, strict=True)
    assert strict["precision"] == 1 / 3
    assert strict["recall"] == 1 / 3


def test_several_labels_by_loops():
    rng = np.random.default_rng(0)
    labels, guesses = rng.integers(0, 2, (2, 17, 3))
    right = guessed = true = exact = 0
    for row in range(17):
        exact += all(labels[row] == guesses[row])
        for column in range(3):
            guessed += guesses[row, column]
            true += labels[row, column]
            right += labels[row, column] and guesses[row, column]
    p, r = right / guessed, right / true
    assert several_labels(labels, guesses.astype(bool)) == pytest.approx(
        {
            "exact_match": exact / 17,
            "precision": p,
            "recall": r,
            "f1": 2 * p * r / (p + r),
        }
    )
    nothing = several_labels(np.zeros((2, 3)), np.zeros((2, 3)))
    assert nothing == {
        "exact_match": 1.0, "precision": 0.0, "recall": 0.0, "f1": 0.0
    }  # fmt: skip


def test_tags_without_an_entity():
    nothing = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "by_type": {}}
    assert entity_f1([["O", "O"]], [["O", "O"]]) == nothing


def test_an_entity_ends_with_its_sentence():
    split = entity_f1([["B-PER"], ["I-PER"]], [["B-PER"], ["B-PER"]])
    assert split["f1"] == 1.0


# Peer: scikit-learn and scipy, and the counts of conlleval in our words.


@random_tests
@given(columns(st.integers(0, 2)) | columns(st.sampled_from(["no", "yes"])))
def test_labels_as_scikit_learn(pair):
    peer = pytest.importorskip("sklearn.metrics")
    labels, guesses = pair
    assert accuracy(*pair) == pytest.approx(peer.accuracy_score(*pair))
    expected = peer.f1_score(*pair, average="macro", zero_division=0)
    assert f1(*pair, average="macro") == pytest.approx(expected)
    for positive in {*labels, *guesses}:
        expected = peer.f1_score(
            *pair, labels=[positive], average=None, zero_division=0
        )
        assert f1(*pair, positive=positive) == pytest.approx(expected[0])
    if len({*labels, *guesses}) > 1:
        expected = peer.matthews_corrcoef(*pair)
        assert matthews(*pair) == pytest.approx(expected)


@random_tests
@given(st.integers(1, 9), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_any_number_of_classes_as_scikit_learn(classes, rows, seed):
    """Classes that are rare, or in one column alone, and large numbers."""
    peer = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    values = rng.integers(-(2**40), 2**40, classes)
    pair = values[rng.integers(0, classes, (2, rows))]
    expected = peer.f1_score(*pair, average="macro", zero_division=0)
    assert f1(*pair, average="macro") == pytest.approx(expected, abs=1e-12)
    if len(np.unique(pair)) > 1:
        expected = peer.matthews_corrcoef(*pair)
        assert matthews(*pair) == pytest.approx(expected, abs=1e-12)


def test_nothing_predicted_and_nothing_expected_as_scikit_learn():
    peer = pytest.importorskip("sklearn.metrics")
    for pair in (
        ([1, 1, 0], [0, 0, 0]),
        ([0, 0, 0], [1, 0, 1]),
        ([0, 0], [0, 0]),
        ([1], [1]),
        ([1], [0]),
        ([0, 1, 2], [1, 2, 0]),
        ([2, 2], [3, 3]),
    ):
        expected = peer.f1_score(*pair, average="macro", zero_division=0)
        assert f1(*pair, average="macro") == pytest.approx(expected), pair
        expected = peer.f1_score(
            *pair, labels=[1], average=None, zero_division=0
        )
        assert f1(*pair) == pytest.approx(expected[0]), pair
        if len({*pair[0], *pair[1]}) > 1:  # else the peer warns
            expected = peer.matthews_corrcoef(*pair)
            assert matthews(*pair) == pytest.approx(expected), pair


def test_matthews_of_many_rows_does_not_overflow():
    """The product of four counts of 100,000 rows exceeds 64 bits."""
    labels = np.repeat([0, 1], 100_000)
    guesses = np.roll(labels, 25_000)
    assert matthews(labels, guesses) == pytest.approx(0.5)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("metric", [pearson, spearman])
def test_the_scale_of_numbers_changes_no_correlation(metric, scale):
    x, y = [1.0, 2.0, 4.0, 5.0, 5.0], [1.0, 3.0, 2.0, 5.0, 5.0]
    scaled = [value * scale for value in x]
    assert metric(scaled, y) == pytest.approx(metric(x, y))
    assert metric(x, scaled) == pytest.approx(1.0)


def test_correlations_as_scipy():
    peer = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for size in (2, 3, 5, 41, 1_009):
        for rounded in (False, True):  # with equal ranks and without
            x = rng.normal(size=size)
            y = rng.normal(size=size) + x * rng.choice([-1, 0.1, 3])
            if rounded:
                x, y = np.round(x * 2), np.round(y)
            if len(set(x)) == 1 or len(set(y)) == 1:
                continue
            expected = peer.pearsonr(x, y).statistic
            assert pearson(x, y) == pytest.approx(expected, abs=1e-12)
            expected = peer.spearmanr(x, y).statistic
            assert spearman(x, y) == pytest.approx(expected, abs=1e-12)


def counts_of_conlleval(tags, guesses):
    """One pass over both columns, as the script makes it, in our words.

    A pair of chunks is right if they start together, end together and have
    one type; a blank line, "O" here, ends every sentence.
    """
    rows = [
        pair
        for sentence in zip(tags, guesses, strict=True)
        for pair in [*zip(*sentence, strict=True), ("O", "O")]
    ]
    counts = {name: Counter() for name in ("right", "true", "guessed")}
    running = None
    for before, now in itertools.pairwise([("O", "O"), *rows]):
        starts, ends = [], []
        for old, new in zip(before, now, strict=True):
            other = old[2:] != new[2:] or new[0] == "B"
            ends.append(old != "O" and (new == "O" or other))
            starts.append(new != "O" and (old == "O" or other))
        if running is not None:
            if all(ends):
                counts["right"][running] += 1
            if any(ends):
                running = None
        if all(starts) and now[0][2:] == now[1][2:]:
            running = now[0][2:]
        for name, tag, start in zip(
            ("true", "guessed"), now, starts, strict=True
        ):
            counts[name][tag[2:]] += start
    return counts


def ratios(right, true, guessed):
    precision = right / guessed if guessed else 0.0
    recall = right / true if true else 0.0
    both = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
    }


@random_tests
@given(
    st.lists(columns(st.sampled_from(TAGS)), min_size=1, max_size=7),
    st.sampled_from([0.0, 0.5, 0.8]),
    st.randoms(use_true_random=False),
)
def test_entities_as_conlleval_counts_them(sentences, share, rng):
    tags = [wanted for wanted, _ in sentences]
    guesses = [  # chance alone hits few, so some are copied
        [a if rng.random() < share else b for a, b in zip(*pair, strict=True)]
        for pair in sentences
    ]
    counts = counts_of_conlleval(tags, guesses)
    received = entity_f1(tags, guesses)
    by_type = received.pop("by_type")
    expected = ratios(*(sum(counter.values()) for counter in counts.values()))
    assert received == pytest.approx(expected)
    kinds = {kind for kind in counts["true"] + counts["guessed"] if kind}
    assert set(by_type) == kinds
    for kind, row in by_type.items():
        assert row.pop("count") == counts["true"][kind]
        expected = ratios(*(counter[kind] for counter in counts.values()))
        assert row == pytest.approx(expected)


# Property.


@random_tests
@given(columns(st.integers(0, 3)), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(pair, rng):
    order = list(range(len(pair[0])))
    rng.shuffle(order)
    turned = [[column[i] for i in order] for column in pair]
    for metric in (accuracy, f1, matthews):
        assert metric(*turned) == pytest.approx(metric(*pair))


@random_tests
@given(st.lists(st.lists(st.sampled_from(TAGS), min_size=1), min_size=1))
def test_the_tags_themselves_are_perfect(tags):
    received = entity_f1(tags, tags)
    has_entities = any(tag != "O" for row in tags for tag in row)
    assert received["f1"] == float(has_entities)


# Error.


@pytest.mark.parametrize("metric", [accuracy, f1, matthews, pearson, spearman])
def test_columns_of_other_length_or_type_are_refused(metric):
    for pair in (([], []), ([1, 2], [1]), ([[1, 2]], [[1, 2]])):
        with pytest.raises(ValueError, match="must be of one length, 1 at"):
            metric(*pair)
    with pytest.raises(ValueError, match="both be integers or both be strings"):
        metric(["1", "2"], [1, 2])


@pytest.mark.parametrize("shape", [(3, 2), (2, 2), (4,), (0, 3)])
def test_tables_of_other_shape_are_refused(shape):
    wanted = np.zeros((2, 3) if shape != (0, 3) else shape)
    with pytest.raises(ValueError, match=r"must have one shape, \(B, K\)"):
        several_labels(wanted, np.zeros(shape))


def test_bad_options_of_f1_and_correlations_are_refused():
    with pytest.raises(ValueError, match="`average` must be .* 'micro'"):
        f1([1], [1], average="micro")
    with pytest.raises(ValueError, match="`positive` .* Received: 1 for <U3"):
        f1(["yes"], ["yes"])
    with pytest.raises(ValueError, match="`positive` must be of the kind"):
        f1([1], [1], positive="yes")
    for bad in ([1.0], [1.0, math.nan], [1.0, math.inf]):
        for metric in (pearson, spearman):
            with pytest.raises(ValueError, match="two finite numbers or more"):
                metric(bad, bad)


@pytest.mark.parametrize("metric", [accuracy, f1, matthews, pearson, spearman])
@pytest.mark.parametrize(
    "wrong",
    [
        [0, math.nan],
        [math.inf, 1],
        np.array([0.0, -np.inf]),
        np.array([0, np.nan], "float32"),
        np.array([0, np.nan], object),
        ["a", math.nan],
        ["a", None],
        ["a", 1],
        [None, None],
        [0, None],
        [[0], [1, 2]],
        [0, {}],
        [b"a", b"b"],
        [1j, 1],
    ],
    ids=str,
)
def test_no_metric_measures_what_is_no_number_and_no_string(metric, wrong):
    good = ["a", "b"] if isinstance(wrong[0], str) else [0, 1]
    for pair in ((wrong, good), (good, wrong), (wrong, wrong)):
        with pytest.raises(ValueError, match="Received: ") as caught:
            metric(*pair)
        assert "`labels` and `predictions` must" in str(caught.value)


@pytest.mark.parametrize("metric", [accuracy, f1, matthews, pearson, spearman])
@pytest.mark.parametrize("wrong", ["01", b"01", 3, None])
def test_no_metric_measures_what_is_no_column(metric, wrong):
    with pytest.raises(ValueError, match="must be lists or arrays"):
        metric(wrong, wrong)


def test_correlations_of_strings_are_refused():
    for metric in (pearson, spearman):
        with pytest.raises(ValueError, match="two finite numbers or more"):
            metric(["a", "b"], ["a", "b"])


@pytest.mark.parametrize("wrong", [math.nan, 2, -1, 0.5, math.inf])
def test_several_labels_that_are_not_zero_or_one_are_refused(wrong):
    good, bad = np.zeros((2, 3)), np.zeros((2, 3))
    bad[1, 2] = wrong
    with pytest.raises(ValueError, match="`labels` must hold 0 and 1"):
        several_labels(bad, good)
    with pytest.raises(ValueError, match="`predictions` must hold 0 and 1"):
        several_labels(good, bad)


@pytest.mark.parametrize("pair", [("O", ["O"]), (["O"], "O")])
def test_a_sentence_that_is_no_list_is_refused(pair):
    with pytest.raises(ValueError, match="must hold lists of tags"):
        entity_f1([pair[0]], [pair[1]])


def test_sentences_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="the same sentences.* 1 and 0"):
        entity_f1([["O"]], [])
    with pytest.raises(ValueError, match="the same sentences"):
        entity_f1([], [])
    message = r"`predictions\[1\]` must hold a tag for each of 2 .* 1\."
    with pytest.raises(ValueError, match=message):
        entity_f1([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match=r"`tags\[0\]` must be O.* 'PER'"):
        entity_f1([["PER"]], [["O"]])
