"""Tags of words on tokens: alignment, windows of sentences, decoding.

Differences: the paper tags the first piece of a word; here also the last, or
all. A word that the tokenizer would drop becomes [UNK], so that every
word has a piece and a tag. A long sentence goes into windows that overlap,
where Google's code cuts it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bertbook.checks import check_text, each_row, is_integer
from bertbook.config import TAG_STRATEGIES
from bertbook.tasks.windows import check_stride, check_window, most_context
from bertbook.text.bio import repair_bio, split_tag

STRATEGIES = TAG_STRATEGIES


class TagWindow(NamedTuple):
    """A sentence, or a part of a long one, as the model sees it.

    Attributes:
        input_ids: [CLS] pieces [SEP], S ids.
        token_type_ids: S zeros.
        word_ids: The number of each token's word; -1 for [CLS] and [SEP].
        words: The words it speaks for, `range`: each word of a sentence in
            the one window where it has the most context.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    word_ids: list[int]
    words: range


def words_to_pieces(tokenizer: Any, words: Sequence[str]) -> list[list[int]]:
    """Returns the ids of each word, one at least.

    A word with nothing that the model could see, such as a lone control
    character, is [UNK].

    Args:
        tokenizer: A `Tokenizer`.
        words: W words.

    Raises:
        ValueError: There is no word, or one is empty or no string.
    """
    no_list = isinstance(words, str) or not hasattr(words, "__len__")
    if no_list or not len(words):
        raise ValueError(
            f"`words` must be a list of at least one word. Received: {words!r}."
        )
    for number, word in enumerate(words):
        check_text(word, f"words[{number}]")
        if not word:
            raise ValueError(f"`words[{number}]` must not be empty.")
    unknown = [tokenizer.unk_token_id]
    return [ids or unknown for ids in tokenizer.encode_pieces(list(words))]


def window_words(
    tokenizer: Any,
    words: Sequence[str],
    max_length: int = 128,
    stride: int | None = None,
) -> list[TagWindow]:
    """Puts a sentence into windows of whole words; a short one into one.

    Args:
        tokenizer: A `Tokenizer`.
        words: W words.
        max_length: S of the longest window, [CLS] and [SEP] included.
        stride: Pieces from the start of a window to that of the next, or
            fewer, to start with a word. None takes half of a window.

    Raises:
        ValueError: What `words_to_pieces` refuses, a word that does not fit
            into a window, or a `stride` not smaller than the window.
    """
    pieces = words_to_pieces(tokenizer, words)
    max_length = check_window(max_length, has_pair=False)
    sizes = [len(ids) for ids in pieces]
    room = max_length - 2
    stride = check_stride(stride, room, max_length)
    bounds = cut_words(sizes, room, stride)
    starts = [first for first, _ in bounds]
    owners = most_context(starts, [last - first for first, last in bounds])
    windows = []
    for number, (first, last) in enumerate(bounds):
        ids = [i for word in pieces[first:last] for i in word]
        words_of = np.repeat(range(first, last), sizes[first:last])
        # These are consecutive, or there are none.
        owned_words = np.flatnonzero(owners == number).tolist()
        windows.append(
            TagWindow(
                [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id],
                [0] * (len(ids) + 2),
                [-1, *words_of.tolist(), -1],
                range(owned_words[0], owned_words[-1] + 1)
                if owned_words
                else range(0),
            )
        )
    return windows


def cut_words(
    sizes: Sequence[int], room: int, stride: int
) -> list[tuple[int, int]]:
    """Returns the first word of each window and the one after its last.

    Args:
        sizes: Pieces of each word.
        room: Most pieces of a window.
        stride: Most pieces between two starts; more where the next window
            would hold no new word.

    Raises:
        ValueError: A word has more pieces than `room`.

    >>> cut_words([1, 1, 2, 1, 3, 1], room=4, stride=2)
    [(0, 3), (2, 4), (3, 5), (4, 6)]
    """
    largest = int(np.argmax(sizes))
    if sizes[largest] > room:
        raise ValueError(
            f"`max_length` must hold every word. Received: {room + 2}, room "
            f"for {room} pieces, and word {largest} of {sizes[largest]} pieces."
        )
    ends = np.cumsum(sizes)  # the first piece after each word
    begins = ends - sizes
    bounds = [(0, int((ends <= room).sum()))]
    while bounds[-1][1] < len(sizes):
        first, last = bounds[-1]
        by_stride = int((begins <= begins[first] + stride).sum()) - 1
        holds_next = int((begins < ends[last] - room).sum())
        first = max(by_stride, holds_next)  # the latter is above `first`
        bounds.append((first, int((ends <= begins[first] + room).sum())))
    return bounds


def speaking_tokens(window: TagWindow, strategy: str = "first") -> np.ndarray:
    """Returns which tokens stand for their words, `(S,)` bool.

    Source: Devlin et al. (2019), section 5.3: the first piece of a word.

    Args:
        window: A window.
        strategy: "first", "last" or "all": which pieces of a word.

    Raises:
        ValueError: `strategy` is unknown.
    """
    if strategy not in STRATEGIES:
        raise ValueError(
            f"`strategy` must be one of {', '.join(STRATEGIES)}. "
            f"Received: {strategy!r}."
        )
    words = np.array(window.word_ids)
    speaking = (words >= window.words.start) & (words < window.words.stop)
    if strategy == "first":
        speaking[1:] &= words[1:] != words[:-1]
    elif strategy == "last":
        speaking[:-1] &= words[:-1] != words[1:]
    return speaking


def label_words(
    windows: Sequence[TagWindow],
    tags: Sequence[str],
    label_ids: Mapping[str, int],
    strategy: str = "first",
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Puts the tags of words on their pieces.

    Args:
        windows: All windows of one sentence.
        tags: The tag of each word, W.
        label_ids: The number of each tag.
        strategy: Which pieces get the tag of their word.

    Returns:
        Labels, int32, and weights, float32, each `(S,)` for every window. The
        weight is 1 where a token speaks for a word and 0 elsewhere, where the
        label means nothing.

    Raises:
        ValueError: There is not one tag for each word, a tag has no number,
            or `strategy` is unknown.
    """
    total = windows[-1].words.stop
    if isinstance(tags, str) or len(tags) != total:
        raise ValueError(
            f"`tags` must hold a tag for each of {total} words. "
            f"Received: {len(tags)}."
        )
    for number, tag in enumerate(tags):
        if tag not in label_ids:
            raise ValueError(
                f"`tags[{number}]` must be one of {', '.join(label_ids)}. "
                f"Received: {tag!r}."
            )
    ids = np.array([label_ids[tag] for tag in tags])
    labels, weights = [], []
    for window in windows:
        speaking = speaking_tokens(window, strategy)
        token_labels = np.where(speaking, ids[window.word_ids], 0)
        labels.append(token_labels.astype("int32"))
        weights.append(speaking.astype("float32"))
    return labels, weights


def name_tags(
    column: Sequence[Sequence[Any]], id2label: Mapping[int, str]
) -> list[list[Any]]:
    """Puts the names of a model in place of integers.

    Args:
        column: Tags of each sentence: names, or the numbers of the model.
        id2label: The names of the model.

    Raises:
        ValueError: A row is no list, or a number is not one of the model; the
            row is named.
    """

    def named(row, tags):
        if isinstance(tags, str) or not hasattr(tags, "__len__"):
            raise ValueError(
                f"`tags[{row}]` must be a list of tags. Received: {tags!r}."
            )
        if not all(map(is_integer, tags)):
            return list(tags)
        unknown = [int(tag) for tag in tags if int(tag) not in id2label]
        if unknown:
            raise ValueError(
                f"`tags[{row}]` must hold numbers in [0, {len(id2label)}), the "
                f"tags of the model. Received: {unknown[0]}."
            )
        return [id2label[int(tag)] for tag in tags]

    return each_row(named, column)


def fit_tags(tags: Sequence[str], known: Collection[str]) -> list[str]:
    """Repairs the tags of a sentence, in the scheme that a model knows.

    In the older scheme, IOB1, an entity begins with I-, and with B- only where
    it touches another of its type. A model knows it that has I- for a type and
    no B-.

    Args:
        tags: Tags of the words, BIO of either scheme.
        known: The tags of the model.

    Raises:
        ValueError: A tag is not BIO.

    >>> fit_tags(["I-PER", "B-PER", "O"], known={"B-PER", "I-PER", "O"})
    ['B-PER', 'B-PER', 'O']
    >>> fit_tags(["B-PER", "I-PER", "O"], known={"I-PER", "O"})
    ['I-PER', 'I-PER', 'O']
    """
    repaired = repair_bio(tags)
    if not _is_older(known):
        return repaired
    kinds = [split_tag(tag)[1] for tag in repaired]
    return [
        f"I-{kind}" if kind and before != kind else tag
        for tag, kind, before in zip(
            repaired, kinds, ["", *kinds], strict=False
        )
    ]


def _is_older(known: Collection[str]) -> bool:
    """Returns whether tags are of IOB1: a type has I- and no B-."""
    tags = {str(tag) for tag in known}
    return any(
        tag.startswith("I-") and f"B-{tag[2:]}" not in tags for tag in tags
    )


def word_scores(
    windows: Sequence[TagWindow],
    logits: Sequence[np.ndarray],
    strategy: str = "first",
) -> np.ndarray:
    """Brings the logits of pieces back to words.

    Args:
        windows: All windows of one sentence.
        logits: Floats for each window, `(S, K)`; rows that pad it are not
            looked at.
        strategy: Which pieces stand for a word. For "all" it is their mean.

    Returns:
        Log-probabilities, `(W, K)`.

    Raises:
        ValueError: There are not logits for each token, or one is not finite.
    """
    if len(logits) != len(windows):
        raise ValueError(
            f"`logits` must hold an array for each of {len(windows)} windows. "
            f"Received: {len(logits)}."
        )
    words, rows = [], []
    for window, array in zip(windows, logits, strict=True):
        speaking = speaking_tokens(window, strategy)
        array = np.asarray(array, float)
        if array.ndim != 2 or len(array) < len(speaking):
            raise ValueError(
                f"`logits` must have shape ({len(speaking)}, K), or more rows. "
                f"Received: {array.shape}."
            )
        words.append(np.array(window.word_ids)[speaking])
        rows.append(array[: len(speaking)][speaking])
    numbers, scores = np.concatenate(words), _log_softmax(np.concatenate(rows))
    sums = np.zeros((windows[-1].words.stop, scores.shape[1]))  # (W, K)
    np.add.at(sums, numbers, scores)
    return sums / np.bincount(numbers)[:, np.newaxis]


def decode_tags(
    windows: Sequence[TagWindow],
    logits: Sequence[np.ndarray],
    labels: Sequence[str],
    strategy: str = "first",
) -> tuple[list[str], np.ndarray]:
    """Returns the likeliest tag of each word, and its probability.

    The tags may break the rules of BIO; `repair_bio` repairs them.

    Args:
        windows: All windows of one sentence.
        logits: `(S, K)` for each window.
        labels: K tags, in the order of their numbers.
        strategy: As in `word_scores`.

    Returns:
        W tags and their probabilities, `(W,)`.

    Raises:
        ValueError: What `word_scores` refuses, or `labels` are not K.
    """
    scores = word_scores(windows, logits, strategy)
    if len(labels) != scores.shape[1]:
        raise ValueError(
            f"`labels` must hold {scores.shape[1]} tags, one for each logit. "
            f"Received: {len(labels)}."
        )
    best = scores.argmax(axis=1).tolist()
    return [labels[i] for i in best], np.exp(scores.max(axis=1))


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    wrong = np.argwhere(~np.isfinite(logits))
    if len(wrong):
        raise ValueError(
            f"`logits` must be finite. Received: {logits[tuple(wrong[0])]}."
        )
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
