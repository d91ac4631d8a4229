"""Examples: pairs against Google's rule, rows by loops, shares of real text."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.pretraining import examples as module
from bertbook.pretraining.corpus import prepare, read_shard
from bertbook.pretraining.examples import (
    IS_NEXT,
    NOT_NEXT,
    ExampleSettings,
    assemble,
    describe,
    draw_pairs,
    draw_runs,
    make_examples,
)
from bertbook.pretraining.masking import UNITS, Masking
from tests.helpers.corpora import (
    ODD,
    as_lists,
    make_shard,
    mini,
    mini_pieces,
    odd_pieces,
    shelf_corpus,
)

random_tests = settings(max_examples=150, deadline=None, derandomize=True)
shapes = st.lists(  # lengths of the sentences of each document
    st.lists(st.integers(1, 29), min_size=1, max_size=11),
    min_size=2,
    max_size=7,
)


@pytest.fixture(scope="module")
def shelf_shard(tmp_path_factory):
    """All documents that ship in one shard."""
    made = shelf_corpus(tmp_path_factory.mktemp("shelf"))
    (path,) = made.shards()
    return read_shard(path)


def texts_of(spans, shard):
    """The ids of the first and of the second text of each span."""
    ids = shard.tokens.tolist()
    return [(ids[a:b], ids[c:d]) for a, b, c, d in spans.tolist()]


# Definition: the rule of Google's generator, in plain lists.


class Dice:
    """The lots of a NumPy generator, in the words of Google's rule."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def random(self):
        return self.generator.random()

    def randint(self, low, high):
        return int(self.generator.integers(low, high + 1))

    def other(self, count, document):
        others = [i for i in range(count) if i != document]
        return others[self.randint(0, count - 2)]

    def cut(self, count):
        return int(self.generator.binomial(count, 0.5)) if count else 0


def google_pairs(documents, settings, dice):
    """Both texts of every pair, and whether the second is random."""
    return [
        pair
        for number in range(len(documents))
        for pair in google_document(documents, number, settings, dice)
    ]


def google_document(documents, number, settings, dice):
    document, room = documents[number], settings.max_length - 3
    chunk, i = [], 0
    while i < len(document):
        if not chunk:  # Google's code draws once, before the loop
            target = room
            if dice.random() < settings.short_share:
                target = dice.randint(2, room)
        chunk.append(document[i])
        if i == len(document) - 1 or sum(map(len, chunk)) >= target:
            cut = 1 if len(chunk) == 1 else dice.randint(1, len(chunk) - 1)
            first, second = sum(chunk[:cut], []), []
            is_random = len(chunk) == 1 or dice.random() < 0.5
            if is_random:
                other = documents[dice.other(len(documents), number)]
                for sentence in other[dice.randint(0, len(other) - 1) :]:
                    second += sentence
                    if len(second) >= target - len(first):
                        break
                i -= len(chunk) - cut  # what is not used comes again
            else:
                second = sum(chunk[cut:], [])
            yield *google_cut(first, second, room, dice), is_random
            chunk = []
        i += 1


def google_cut(first, second, room, dice):
    """Takes tokens from the longer text until both fit."""
    lengths = [len(first), len(second)]
    while sum(lengths) > room:
        lengths[0 if lengths[0] > lengths[1] else 1] -= 1
    if lengths == [len(first), len(second)]:
        return first, second
    fronts = [
        dice.cut(len(text) - length)
        for text, length in zip((first, second), lengths, strict=True)
    ]
    return tuple(
        text[front : front + length]
        for text, front, length in zip(
            (first, second), fronts, lengths, strict=True
        )
    )


@random_tests
@given(
    shapes,
    st.integers(5, 67),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 10**6),
)
def test_pairs_by_loops(shape, max_length, short_share, seed):
    """The same lots give the same pairs, token by token."""
    shard = make_shard(shape)
    options = ExampleSettings(max_length=max_length, short_share=short_share)
    spans, labels = draw_pairs(shard, options, np.random.default_rng(seed))
    assert spans.shape == (len(labels), 4)
    assert labels.dtype == np.int32
    expected = google_pairs(as_lists(shard), options, Dice(seed))
    ours = [
        (*texts, bool(label))
        for texts, label in zip(texts_of(spans, shard), labels, strict=True)
    ]
    assert ours == expected


def test_pairs_by_hand():
    """Two sentences that fill a row of 5, and one of another document."""
    shard = make_shard([[2, 3], [4]])
    options = ExampleSettings(max_length=8, short_share=0)
    seen = [set() for _ in range(4)]
    for seed in range(300):
        spans, labels = draw_pairs(shard, options, np.random.default_rng(seed))
        *first_document, last = map(tuple, spans.tolist())
        for place, span in enumerate(first_document, labels[0]):
            seen[place].add(span)
        seen[3].add(last)
        assert labels[0] or len(labels) == 2
        assert labels[1:].all()
    assert seen[0] == {(0, 2, 2, 5)}  # it goes on
    # It does not: the stranger loses a token, and the 3 come again, alone.
    assert seen[1] == {(0, 2, 5, 8), (0, 2, 6, 9)}
    assert seen[2] == {(2, 5, 5, 7), (2, 5, 6, 8), (2, 5, 7, 9)}
    firsts, seconds = [(5, 8), (6, 9)], [(0, 2), (2, 4), (3, 5)]
    assert seen[3] == {x + y for x in firsts for y in seconds}


def chunks_of(shard, options, seed):
    """Pairs, and the chunk of sentences that each was made from."""
    calls, real = [], module.find_stop

    def spy(starts, here, end, target):
        calls.append((here, end, target, real(starts, here, end, target)))
        return calls[-1][-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "find_stop", spy)
        spans, labels = draw_pairs(shard, options, np.random.default_rng(seed))
    calls = iter(calls)
    chunks = []
    for label in labels:
        chunks.append(next(calls))
        if label == NOT_NEXT:
            next(calls)  # the stranger's
    assert not list(calls)
    return spans, labels, chunks


# Definition: rows.


def test_rows_by_loops():
    rng = np.random.default_rng(0)
    pieces, length = odd_pieces(), 23
    tokens = rng.choice(pieces.ordinary, 211).astype("uint16")
    spans = [
        (0, 7, 30, 43),
        (11, 12, 210, 211),
        (50, 69, 90, 91),
        (9, 30, 30, 30),
    ]
    spans += [(100, 101, 101, 101), (3, 4, 102, 121)]
    rows = assemble(tokens, np.array(spans), length, pieces)
    for number, (a, b, c, d) in enumerate(spans):
        row = [pieces.cls, *tokens[a:b], pieces.sep]
        types = [0] * len(row)
        if d > c:
            row += [*tokens[c:d], pieces.sep]
            types += [1] * (d - c + 1)
        pad = length - len(row)
        assert rows["input_ids"][number].tolist() == row + [pieces.pad] * pad
        assert rows["token_type_ids"][number].tolist() == types + [0] * pad
        mask = rows["attention_mask"][number].tolist()
        assert mask == [1] * len(row) + [0] * pad
    assert {array.shape for array in rows.values()} == {(6, 23)}
    assert rows["input_ids"].dtype == "uint16"


@random_tests
@given(shapes, st.integers(1, 67), st.integers(0, 10**6))
def test_runs_by_loops(shape, room, seed):
    """Whole runs, but for the first and the last of a document."""
    shard = make_shard(shape)
    spans = draw_runs(shard, room, np.random.default_rng(seed))
    assert (spans[:, 1:3] == spans[:, 3:]).all()  # no second text
    dice = np.random.default_rng(seed)
    expected = []
    for document in as_lists(shard):
        ids = sum(document, [])
        first = int(dice.integers(1, room + 1))
        expected.append(ids[:first])
        for start in range(first, len(ids), room):
            expected.append(ids[start : start + room])
    assert [first for first, _ in texts_of(spans, shard)] == expected


# Property.


@random_tests
@given(
    shapes,
    st.integers(5, 67),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.integers(0, 10**6),
)
def test_pairs_fit_and_stay_within_their_documents(
    shape, max_length, short_share, seed
):
    shard = make_shard(shape)
    options = ExampleSettings(max_length=max_length, short_share=short_share)
    spans, labels, chunks = chunks_of(shard, options, seed)
    lengths = np.diff(spans.reshape(-1, 2, 2))[..., 0]
    assert (lengths >= 1).all()
    assert (lengths.sum(axis=1) <= max_length - 3).all()
    document = documents_of(spans, shard)
    assert (document[:, 0] == document[:, 1]).all()  # no text goes beyond
    assert (document[:, 2] == document[:, 3]).all()
    same = document[:, 0] == document[:, 2]
    np.testing.assert_array_equal(same, labels == IS_NEXT)
    assert (np.diff(document[:, 0]) >= 0).all()
    starts, total = shard.sentences, len(shard.sentences) - 1
    following = [here for here, *_ in chunks[1:]] + [total]
    assert chunks[0][0] == 0
    for (here, end, target, stop), label, after, span in zip(
        chunks, labels, following, spans, strict=True
    ):
        # As few sentences as fill the target, or all that are left.
        assert stop == end or starts[stop] - starts[here] >= target
        assert stop == here + 1 or starts[stop - 1] - starts[here] < target
        assert starts[here] <= span[0]
        if label == IS_NEXT:
            assert span[1] <= span[2] < span[3] <= starts[stop]
            assert after == stop
        else:  # what stood behind the first text is taken again
            assert span[1] <= starts[after]
            assert here < after < stop or after == stop == here + 1


def documents_of(spans, shard):
    """The documents of the first and last tokens of both texts, `(n, 4)`."""
    begins = shard.sentences[shard.documents]
    tokens = spans - [0, 1, 0, 1]
    return np.searchsorted(begins, tokens, side="right") - 1


def pairs_that_go_on(shape, max_length, times):
    """The spans of first pairs, of many draws, whose second text goes on."""
    options = ExampleSettings(max_length=max_length, short_share=0)
    for seed in range(times):
        dice = np.random.default_rng(seed)
        spans, labels = draw_pairs(make_shard(shape), options, dice)
        if labels[0] == IS_NEXT:
            yield spans[0].tolist()


@pytest.mark.parametrize(
    ("shape", "max_length", "lengths"),
    [
        ([[19, 20], [1]], 24, (11, 10)),
        ([[19, 20], [1]], 25, (11, 11)),
        ([[20, 19], [1]], 24, (11, 10)),
        ([[19, 5], [1]], 23, (15, 5)),
        ([[5, 19], [1]], 23, (5, 15)),
    ],
)
def test_the_longer_text_is_cut(shape, max_length, lengths):
    """Of two that are as long the second one is, as in Google's code."""
    seconds = set()
    for a, b, c, d in pairs_that_go_on(shape, max_length, 100):
        assert (b - a, d - c) == lengths
        seconds.add(c)
    assert len(seconds) == 1 or lengths[1] < shape[0][1]


OPTIONS = {
    "pairs": ExampleSettings(max_length=64),
    "whole words": ExampleSettings(max_length=64, masking=Masking(unit="word")),
    "spans": ExampleSettings(max_length=64, masking=Masking(unit="span")),
    "single texts": ExampleSettings(max_length=64, next_sentence=False),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_examples_are_the_texts_with_tokens_hidden(case, shelf_shard):
    """Put back what was hidden, and the rows are those of `assemble`."""
    options = OPTIONS[case]
    made = make_examples(
        shelf_shard, mini_pieces(), options, np.random.default_rng(3)
    )
    dice = np.random.default_rng(3)
    if options.next_sentence:
        spans, labels = draw_pairs(shelf_shard, options, dice)
    else:
        spans, labels = draw_runs(shelf_shard, 62, dice), None
    rows = assemble(shelf_shard.tokens, spans, 64, mini_pieces())
    count = len(spans)
    names = ["input_ids", "token_type_ids", "attention_mask"]
    names += [f"masked_lm_{x}" for x in ("positions", "ids", "weights")]
    names += ["next_sentence_labels"] if options.next_sentence else []
    assert list(made) == names
    for name in names[:3]:
        assert made[name].shape == (count, 64)
    for name in names[3:6]:
        assert made[name].shape == (count, options.slots) == (count, 10)
    whole = whole_rows(made)
    parts = [whole, made["token_type_ids"], made["attention_mask"]]
    expected = [rows[name] for name in names[:3]]
    if labels is not None:
        parts.append(made["next_sentence_labels"][:, None])
        expected.append(labels[:, None])
    parts, expected = (np.hstack(x).astype(int) for x in (parts, expected))
    assert not np.array_equal(parts, expected)  # in random order
    assert sorted(parts.tolist()) == sorted(expected.tolist())


def whole_rows(made):
    """The rows before tokens were hidden."""
    used = made["masked_lm_weights"] > 0
    rows = np.nonzero(used)[0]
    whole = made["input_ids"].copy()
    whole[rows, made["masked_lm_positions"][used]] = made["masked_lm_ids"][used]
    return whole


def test_describe_by_loops(shelf_shard):
    for case in ("pairs", "single texts"):
        made = make_examples(
            shelf_shard, mini_pieces(), OPTIONS[case], np.random.default_rng(0)
        )
        lengths = [sum(row) for row in made["attention_mask"].tolist()]
        hidden = [sum(row) for row in made["masked_lm_weights"].tolist()]
        facts = {
            "examples": len(lengths),
            "mean_length": sum(lengths) / len(lengths),
            "masked_share": sum(hidden) / sum(lengths),
        }
        if case == "pairs":
            labels = made["next_sentence_labels"].tolist()
            facts["random_share"] = labels.count(1) / len(labels)
        assert describe(made) == pytest.approx(facts)
        assert {type(fact) for fact in describe(made).values()} == {float}


def test_special_tokens_in_raw_text_are_never_hidden(tmp_path):
    """Such tokens in raw text are never hidden, nor do they end a text."""
    path = tmp_path / "a.txt"
    line = "The [MASK] stood by [SEP] and [CLS] and [UNK] ☃ all day. "
    path.write_text("\n\n".join([line * 9] * 31), encoding="utf-8")
    made = prepare([path], mini(), tmp_path / "out", held_out=0)
    shard, pieces = read_shard(made.shards()[0]), mini_pieces()
    assert pieces.special[shard.tokens].mean() > 0.2
    for unit in UNITS:
        options = ExampleSettings(max_length=50, masking=Masking(unit=unit))
        batch = make_examples(shard, pieces, options, np.random.default_rng(0))
        used = batch["masked_lm_weights"] > 0
        assert not pieces.special[batch["masked_lm_ids"][used]].any()
        whole = whole_rows(batch)
        assert (whole == pieces.sep).sum() > 3 * len(whole)
        starts = np.diff(batch["token_type_ids"].astype(int)) == 1
        assert (starts.sum(axis=1) == 1).all()


# Property: shares over many examples.


def check_shares(shard_examples, unit, bounds):
    """Counts over the shards of a corpus; returns examples, shares, lengths."""
    pieces = mini_pieces()
    counts, histogram = Counter(), np.zeros(17, int)
    for batch in shard_examples:
        used = batch["masked_lm_weights"] > 0
        rows = np.nonzero(used)[0]
        before = batch["masked_lm_ids"][used]
        after = batch["input_ids"][rows, batch["masked_lm_positions"][used]]
        whole = whole_rows(batch)
        lengths = batch["attention_mask"].sum(axis=1)
        budgets = np.maximum(1, np.rint(lengths * 0.15))
        is_mask, is_same = after == pieces.mask, after == before
        assert not pieces.special[before].any()
        assert not pieces.special[after[~is_mask]].any()
        assert ((whole != pieces.pad) == batch["attention_mask"]).all()
        assert (used.sum(axis=1) <= budgets).all()
        assert used[lengths > 40].any(axis=1).all()
        check_units(whole, batch, unit, pieces)
        counts["examples"] += len(lengths)
        counts["real"] += int(lengths.sum())
        counts["budget"] += int(budgets.sum())
        counts["hidden"] += int(used.sum())
        counts["mask"] += int(is_mask.sum())
        counts["same"] += int(is_same.sum())
        histogram += np.bincount((lengths - 1) // 8, minlength=17)
    hidden = counts["hidden"]
    shares = {
        "selected": hidden / counts["real"],
        "of the budget": hidden / counts["budget"],
        "[MASK]": counts["mask"] / hidden,
        "kept": counts["same"] / hidden,
        "random": 1 - (counts["mask"] + counts["same"]) / hidden,
    }
    printed = {name: f"{100 * share:.2f} %" for name, share in shares.items()}
    print(f"{unit}: {counts['examples']:,} examples, {printed}")
    print("lengths, in steps of 8:", histogram[:16].tolist())
    assert abs(shares["selected"] - 0.15) < bounds[0]
    wanted = {"[MASK]": 0.8, "kept": 0.1, "random": 0.1}
    for name, share in wanted.items():
        assert abs(shares[name] - share) < bounds[1]
    return counts["examples"]


def check_units(whole, batch, unit, pieces):
    """Every piece in a word has the fate of the piece before it."""
    if unit == "token":
        return
    used = batch["masked_lm_weights"] > 0
    chosen = np.zeros(whole.shape, bool)
    chosen[np.nonzero(used)[0], batch["masked_lm_positions"][used]] = True
    inside = pieces.continues[whole][:, 1:] & ~pieces.special[whole][:, :-1]
    assert inside.any()
    assert (chosen[:, 1:][inside] == chosen[:, :-1][inside]).all()


def check_pairs(shards, options, bound):
    """Shares of random second texts, and that those are strangers."""
    counts = Counter()
    for seed, shard in enumerate(shards):
        spans, labels, chunks = chunks_of(shard, options, seed)
        documents = documents_of(spans, shard)
        assert (documents[:, 0] == documents[:, 1]).all()
        assert (documents[:, 2] == documents[:, 3]).all()
        is_same = documents[:, 0] == documents[:, 2]
        np.testing.assert_array_equal(is_same, labels == IS_NEXT)
        alone = np.array([stop == here + 1 for here, _, _, stop in chunks])
        assert (labels[alone] == NOT_NEXT).all()
        counts["pairs"] += len(labels)
        counts["alone"] += int(alone.sum())
        counts["random"] += int((labels[~alone] == NOT_NEXT).sum())
    free = counts["pairs"] - counts["alone"]
    share = counts["random"] / free
    forced = counts["alone"] / counts["pairs"]
    print(
        f"{counts['pairs']:,} pairs; {100 * forced:.2f} % of one sentence, so "
        f"random; of the others {100 * share:.2f} % random"
    )
    assert abs(share - 0.5) < bound
    return counts["pairs"]


@pytest.mark.parametrize("unit", UNITS)
def test_replacements_of_the_shelf_have_the_shares_of_the_paper(
    unit, shelf_shard
):
    options = ExampleSettings(masking=Masking(unit=unit))
    made = [
        make_examples(
            shelf_shard, mini_pieces(), options, np.random.default_rng(seed)
        )
        for seed in range(3)
    ]
    assert check_shares(made, unit, (0.005, 0.015)) > 2_000


def test_half_of_the_pairs_of_the_shelf_are_random(shelf_shard):
    for options in (ExampleSettings(), ExampleSettings(max_length=40)):
        assert check_pairs([shelf_shard] * 5, options, 0.04) > 3_000


# Error.


@pytest.mark.parametrize("shape", [[[5, 3]], [[1]]])
def test_a_corpus_of_one_document_is_refused(shape):
    shard = make_shard(shape, ids=odd_pieces().ordinary[: sum(shape[0])])
    for call in (
        lambda: draw_pairs(shard, ExampleSettings(), np.random.default_rng(0)),
        lambda: make_examples(
            shard, odd_pieces(), ExampleSettings(), np.random.default_rng(0)
        ),
    ):
        with pytest.raises(
            ValueError, match="at least two documents"
        ) as caught:
            call()
        assert "for `next_sentence`" in str(caught.value)
        assert "Received: 1." in str(caught.value)
    options = ExampleSettings(next_sentence=False, max_length=12)
    made = make_examples(shard, odd_pieces(), options, np.random.default_rng(0))
    assert "next_sentence_labels" not in made
    real = made["attention_mask"].sum()
    assert real == sum(shape[0]) + 2 * len(made["input_ids"])


@pytest.mark.parametrize(("is_pair", "least"), [(True, 5), (False, 3)])
def test_a_max_length_without_room_is_refused(is_pair, least):
    message = (
        f"`max_length` must be an integer >= {least}. Received: {least - 1}."
    )
    with pytest.raises(ValueError, match=message):
        ExampleSettings(max_length=least - 1, next_sentence=is_pair)
    options = ExampleSettings(max_length=least, next_sentence=is_pair)
    shard = make_shard([[3, 2], [2]], ids=odd_pieces().ordinary[:7])
    made = make_examples(shard, odd_pieces(), options, np.random.default_rng(0))
    assert made["attention_mask"].all()
    assert made["input_ids"].shape == (len(made["input_ids"]), least)
    assert options.slots == 1


@pytest.mark.parametrize("share", [-0.1, 1.01, float("nan")])
def test_a_short_share_out_of_range_is_refused(share):
    with pytest.raises(
        ValueError, match=r"`short_share` must be in \[0, 1\]. R"
    ):
        ExampleSettings(short_share=share)


def test_example_settings_are_frozen():
    with pytest.raises(AttributeError):
        ExampleSettings().max_length = 7
    with pytest.raises(TypeError):
        ExampleSettings(128)
    assert ExampleSettings().slots == 20
    assert ExampleSettings() == ExampleSettings(masking=Masking())
    assert ODD[odd_pieces().pad] == "[PAD]"
