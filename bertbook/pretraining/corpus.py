"""`Corpus`: text files as shards of token ids, made once.

A shard holds whole documents: their ids in one row, and where sentences and
documents begin. Documents are mixed on the way, so that neighbors in a file
do not stay neighbors in a shard. One seed, one set of files: one result.

Differences: Google's generator keeps every document in memory as strings.
"""

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.checks import check_text
from bertbook.files import (
    DAMAGES,
    OPENERS,
    hash_file,
    read_json,
    write_json,
)
from bertbook.text.sentences import split_sentences
from bertbook.training.settings import (
    checked_count,
    checked_seed,
    checked_share,
)

RECORD = "corpus.json"
SHARD_NAMES = "train-*.safetensors", "held_out-*.safetensors"
SHARD_TOKENS = 1_000_000
MIXED_TOKENS = 16_000_000  # held at a time while documents are mixed
LONGEST_SENTENCE = 512  # a longer one, in tokens, is cut
LINES_A_CALL = 4_096
LONGEST_LINE = 2**24  # bytes; so a file without line ends fills no memory
LONGEST_DOCUMENT = 2**28  # bytes that its lines take in memory, about
LINE_COST = 64  # bytes that any line takes


@dataclass(frozen=True)
class Shard:
    """Documents as token ids.

    Attributes:
        tokens: Every id, `(n,)`, uint16 or int32.
        sentences: Where each sentence begins in `tokens`, and at the end n.
        documents: Which sentence each document begins with, and at the end
            the number of sentences.
    """

    tokens: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray

    def __len__(self) -> int:
        """Returns the number of documents."""
        return len(self.documents) - 1


class _Encoded(NamedTuple):
    """One document: its ids, and the length of each of its sentences."""

    tokens: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class Corpus:
    """A folder of shards.

    Attributes:
        folder: Where they are.
        record: What `corpus.json` says of them.
    """

    folder: Path
    record: dict[str, Any]

    def shards(self, part: str = "train") -> list[Path]:
        """Returns the files of a part: "train" or "held_out"."""
        return [
            self.folder / f"{part}-{number:05d}.safetensors"
            for number in range(self.record["shards"][part])
        ]


def read_documents(paths: Iterable[str | Path]) -> Iterator[list[str]]:
    """Yields the documents of text files, each a list of its lines.

    A line without text ends a document, and so does the end of a file. Files
    that end in .xz or .gz are unpacked on the way.

    Raises:
        FileNotFoundError: A path is not a file.
        ValueError: `paths` is no list, or a file is damaged, holds no text, is
            not UTF-8, or has a line or a document without end; then the line
            is named.
    """
    for path in check_files(paths):
        lines: list[str] = []
        size, is_empty = 0, True
        for number, line in enumerate(_read_lines(path), 1):
            if line:
                lines.append(line)
                size, is_empty = size + len(line) + LINE_COST, False
                _check_size(size, LONGEST_DOCUMENT, "document", path, number)
            elif lines:
                yield lines
                lines, size = [], 0
        if lines:
            yield lines
        if is_empty:
            raise ValueError(
                f"{path} must hold text. Received: no line with a character."
            )


def _check_size(size, most, name, path, number) -> None:
    """Refuses a line or a document that would fill the memory."""
    if size > most:
        raise ValueError(
            f"{path} must hold documents of lines, an empty line between two "
            f"documents. Received: a {name} of more than {most:,} bytes, up to "
            f"line {number}."
        )


def prepare(
    paths: Sequence[str | Path],
    tokenizer: Any,
    folder: str | Path,
    *,
    held_out: float = 0.01,
    seed: int = 0,
    shard_tokens: int = SHARD_TOKENS,
    replace: bool = False,
) -> Corpus:
    """Writes the shards of a corpus, or finds them written.

    Args:
        paths: Text files; see `read_documents`.
        tokenizer: A `Tokenizer`.
        folder: Where the shards go; made where it is missing.
        held_out: Share of the documents that no training example comes from,
            each drawn by itself; at least two, or none.
        seed: Seed of the mixing and of the choice of held-out documents.
        shard_tokens: About how many tokens a shard holds. It holds two
            documents at least, where the corpus does.
        replace: Whether the shards of another corpus give way to this one.

    Returns:
        The corpus. Where `folder` holds it already, the files are read once to
        see that they are the same, and no shard is written.

    Raises:
        FileNotFoundError: A path is not a file.
        ValueError: There is no text, a file is not UTF-8, an option is out of
            range, or `folder` holds the shards of another corpus.
        OSError: The disk is full, or `folder` cannot be written.
    """
    options = {
        "held_out": checked_share(held_out, "held_out", one=False),
        "seed": checked_seed(seed),
        "shard_tokens": checked_count(shard_tokens, "shard_tokens"),
    }
    paths = check_files(paths)
    settings = {
        "files": [[path.name, path.stat().st_size] for path in paths],
        "sha256": [hash_file(path) for path in paths],
        "vocabulary": vocabulary_hash(tokenizer),
        **options,
    }
    folder = Path(folder)
    if (folder / RECORD).is_file():
        record = read_json(folder / RECORD)
        if not replace or _differing(record, settings) is None:
            return _open(folder, record, settings)
        _remove_shards(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dtype = "uint16" if len(tokenizer) <= 2**16 else "int32"
    counts = {"train": 0, "held_out": 0}
    totals = dict.fromkeys(("documents", "sentences", "tokens"), 0)
    documents = _encode(read_documents(paths), tokenizer, dtype)
    for part, shard in _mix(documents, held_out, seed, shard_tokens):
        name = f"{part}-{counts[part]:05d}.safetensors"
        try:
            safetensors.numpy.save_file(vars(shard), folder / name)
        except safetensors.SafetensorError as error:
            raise OSError(f"{folder / name}: {error}") from error
        counts[part] += 1
        totals["documents"] += len(shard)
        totals["sentences"] += len(shard.sentences) - 1
        totals["tokens"] += len(shard.tokens)
    if not counts["train"]:
        raise ValueError(
            "A corpus must hold text that is not held out. Received: "
            f"{totals['documents']} documents in "
            f"{', '.join(map(str, paths))}."
        )
    record = {**settings, "shards": counts, **totals}
    write_json(folder / RECORD, record)  # now the folder counts as whole
    return Corpus(folder, record)


def read_shard(path: Path) -> Shard:
    """Reads one shard.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged.
    """
    try:
        return Shard(**safetensors.numpy.load_file(path))
    except (safetensors.SafetensorError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error


def vocabulary_hash(tokenizer: Any) -> str:
    """Returns the SHA-256 of a vocabulary and of how text is cut into it."""
    strips = tokenizer.strip_accents
    options: tuple[Any, ...] = (
        tokenizer.lowercase,
        tokenizer.lowercase if strips is None else strips,
        tokenizer.split_cjk,
        tokenizer.max_word_length,
        tokenizer.special_tokens,
    )
    # Those that special tokens alone have are left out, so that the hashes of
    # corpora from before there were others stay as they are.
    others = [
        token.to_dict()
        for token in tokenizer.added_tokens
        if not (token.special and token.is_plain)
    ]
    options += (others,) if others else ()
    text = "\n".join([*tokenizer.vocabulary, repr(options)])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _read_lines(path: Path) -> Iterator[str]:
    """Yields the stripped lines of a file, packed or not."""
    opener = OPENERS.get(path.suffix, open)
    position, number = 0, 0
    try:
        with opener(path, "rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                _check_size(len(line), LONGEST_LINE, "line", path, number)
                yield _decode(line, path, position, number)
                position += len(line)
    except DAMAGES as error:
        raise ValueError(f"{path} is damaged: {error}.") from error


def _decode(line: bytes, path: Path, position: int, number: int) -> str:
    """Returns a line as text, stripped; refuses what is no text."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be UTF-8. Received: byte {line[error.start]:#04x} "
            f"at {position + error.start}, in line {number}."
        ) from error
    return text.strip("\ufeff").strip()


def _encode(documents, tokenizer, dtype) -> Iterator[_Encoded]:
    """Yields documents as ids; many go to the tokenizer in one call."""
    for batch in _gather(documents):
        texts = list(itertools.chain.from_iterable(batch))
        rows = iter(tokenizer.encode_pieces(texts))
        for document in batch:
            sentences = list(itertools.islice(rows, len(document)))
            lengths = [n for row in sentences for n in _cut(len(row))]
            if lengths:
                ids = itertools.chain.from_iterable(sentences)
                yield _Encoded(np.fromiter(ids, dtype), np.array(lengths))


def _cut(length: int) -> Iterator[int]:
    """Yields the lengths of the pieces of a sentence of so many tokens."""
    for start in range(0, length, LONGEST_SENTENCE):
        yield min(LONGEST_SENTENCE, length - start)


def _gather(documents) -> Iterator[list[list[str]]]:
    """Yields documents as lists of sentences, some thousand lines at a time."""
    batch: list[list[str]] = []
    count = 0
    for lines in documents:
        sentences = [s for line in lines for s in split_sentences(line)]
        batch.append(sentences)
        count += len(sentences)
        if count >= LINES_A_CALL:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch


def _mix(documents, held_out, seed, shard_tokens):
    """Yields the part and the shard of documents in mixed order.

    A document goes to either part by chance, then into a pool from which
    shards are drawn: documents from far apart can meet. Two documents at least
    stay in the pool, so that no shard holds a single one, which gives no pair.
    """
    rng = np.random.default_rng(seed)
    pools: dict[str, list[_Encoded]] = {"train": [], "held_out": []}
    held = dict.fromkeys(pools, 0)  # tokens in each pool
    for document in documents:
        part = "held_out" if rng.random() < held_out else "train"
        pools[part].append(document)
        held[part] += len(document.tokens)
        while held[part] >= MIXED_TOKENS and len(pools[part]) >= 4:
            shard = _draw(pools[part], rng, shard_tokens, 2)
            held[part] -= len(shard.tokens)
            yield part, shard
    _move_singles(pools, held, rng)
    for part, pool in pools.items():
        while pool:
            if held[part] < 2 * shard_tokens or len(pool) < 4:
                shard = _draw(pool, rng, held[part], 0)  # all that is left
            else:
                shard = _draw(pool, rng, shard_tokens, 2)
            held[part] -= len(shard.tokens)
            yield part, shard


def _move_singles(pools, held, rng) -> None:
    """Moves a document where a part holds a single one."""
    for part, other_part in ("train", "held_out"), ("held_out", "train"):
        if len(pools[part]) != 1 or not pools[other_part]:
            continue
        takes = part == "train" or len(pools[other_part]) > 2
        giver, taker = (other_part, part) if takes else (part, other_part)
        document = pools[giver].pop(int(rng.integers(len(pools[giver]))))
        pools[taker].append(document)
        held[giver] -= len(document.tokens)
        held[taker] += len(document.tokens)


def _draw(pool: list[_Encoded], rng: Any, size: int, spared: int) -> Shard:
    """Takes documents, two at least, until they hold `size` tokens.

    The last `spared` ones stay in the pool.
    """
    drawn: list[_Encoded] = []
    count = 0
    while len(pool) > spared and (count < size or len(drawn) < 2):
        place = int(rng.integers(len(pool)))
        pool[place], pool[-1] = pool[-1], pool[place]
        drawn.append(pool.pop())
        count += len(drawn[-1].tokens)
    lengths = np.concatenate([document.lengths for document in drawn])
    return Shard(
        tokens=np.concatenate([document.tokens for document in drawn]),
        sentences=np.cumsum([0, *lengths]),
        documents=np.cumsum([0, *(len(d.lengths) for d in drawn)]),
    )


def _open(folder, record, settings) -> Corpus:
    """Returns the corpus of a folder, if it has the same settings."""
    if (key := _differing(record, settings)) is not None:
        raise ValueError(
            f"{folder} holds a corpus with another `{key}`: "
            f"{record.get(key)!r}. Received: {settings[key]!r}. "
            "Name another folder, or remove this one."
        )
    return Corpus(folder, record)


def _differing(record, settings) -> str | None:
    """Returns the first setting that a record has otherwise, None for none.

    Records of older versions do not tell what the files hold.
    """
    known = {"sha256": settings["sha256"], **record}
    return next((k for k, v in settings.items() if known.get(k) != v), None)


def _remove_shards(folder: Path) -> None:
    """Removes a corpus; first the record, without which it is none."""
    (folder / RECORD).unlink()
    for name in SHARD_NAMES:
        for path in folder.glob(name):
            path.unlink()


def corpus_content(corpus: Any, held_out: float) -> dict[str, Any]:
    """Returns what a corpus is made of, so that a run knows it again.

    Args:
        corpus: Text files, or a `Corpus`. Every byte is read once.
        held_out: Share of the documents of text files that is held out.

    Raises:
        FileNotFoundError: A text file or a shard is missing.
        ValueError: `corpus` is neither.
    """
    if not isinstance(corpus, Corpus):
        held_out = checked_share(held_out, "held_out", one=False)
        files = [
            [path.name, path.stat().st_size, hash_file(path)]
            for path in check_files(corpus)
        ]
        return {"files": files, "held_out": held_out}
    shards = [*corpus.shards(), *corpus.shards("held_out")]
    missing = [path for path in shards if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"No shard at {missing[0]}.")
    digest = hashlib.sha256()
    for path in shards:
        digest.update(f"{path.name} {hash_file(path)}\n".encode())
    once = corpus.record.get("once", 0)
    return {"shards": digest.hexdigest(), "once": once}


def check_files(paths) -> list[Path]:
    """Returns the paths as a list; refuses missing files."""
    if isinstance(paths, str | bytes | Path) or not isinstance(paths, Iterable):
        raise ValueError(
            f"`paths` must be a list of files. Received: {str(paths)!r}."
        )
    paths = [Path(_checked_name(path)) for path in paths]
    if not paths:
        raise ValueError("`paths` must name at least one file. Received: [].")
    for path in paths:
        check_text(str(path), "paths")
        if not path.is_file():
            raise FileNotFoundError(f"No text file at {path}.")
    return paths


def _checked_name(path) -> str:
    """Returns the name of a file; refuses what is none."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ValueError(f"`paths` must hold names. Received: {path!r}.")
    return os.fspath(path)
