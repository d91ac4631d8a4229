"""`Corpus`: text files as shards of token ids, made once.

A shard holds whole documents: their ids in one row, and where sentences and
documents begin. Documents are mixed on the way, so that neighbors in a file
do not stay neighbors in a shard. One seed, one set of files: one result.

Differences: Google's generator keeps every document in memory as strings.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.checks import check_text
from bertbook.files import DAMAGES, OPENERS, read_json, write_json
from bertbook.text.sentences import split_sentences

RECORD = "corpus.json"
SHARD_TOKENS = 1_000_000
MIXED_TOKENS = 16_000_000  # held at a time while documents are mixed
LONGEST_SENTENCE = 512  # a longer one, in tokens, is cut
LINES_A_CALL = 4_096


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
        ValueError: `paths` is no list, or a file is damaged or not UTF-8; then
            the byte is named.
    """
    for path in _check_paths(paths):
        lines: list[str] = []
        for line in _read_lines(path):
            if line:
                lines.append(line)
            elif lines:
                yield lines
                lines = []
        if lines:
            yield lines


def prepare(
    paths: Sequence[str | Path],
    tokenizer: Any,
    folder: str | Path,
    *,
    held_out: float = 0.01,
    seed: int = 0,
    shard_tokens: int = SHARD_TOKENS,
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

    Returns:
        The corpus. Where `folder` holds it already, nothing is read again.

    Raises:
        FileNotFoundError: A path is not a file.
        ValueError: There is no text, a file is not UTF-8, an option is out of
            range, or `folder` holds the shards of another corpus.
    """
    paths = _check_paths(paths)
    _check_options(held_out, shard_tokens)
    folder = Path(folder)
    settings = {
        "files": [[path.name, path.stat().st_size] for path in paths],
        "vocabulary": vocabulary_hash(tokenizer),
        "held_out": held_out,
        "seed": seed,
        "shard_tokens": shard_tokens,
    }
    if (folder / RECORD).is_file():
        return _open(folder, settings)
    folder.mkdir(parents=True, exist_ok=True)
    dtype = "uint16" if len(tokenizer) <= 2**16 else "int32"
    counts = {"train": 0, "held_out": 0}
    totals = dict.fromkeys(("documents", "sentences", "tokens"), 0)
    documents = _encode(read_documents(paths), tokenizer, dtype)
    for part, shard in _mix(documents, held_out, seed, shard_tokens):
        name = f"{part}-{counts[part]:05d}.safetensors"
        safetensors.numpy.save_file(vars(shard), folder / name)
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
    position = 0
    try:
        with opener(path, "rb") as file:
            for line in file:
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path} must be UTF-8. Received: byte "
                        f"{line[error.start]:#04x} at {position + error.start}."
                    ) from error
                position += len(line)
                yield text.strip("\ufeff").strip()
    except DAMAGES as error:
        raise ValueError(f"{path} is damaged: {error}.") from error


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


def _open(folder, settings) -> Corpus:
    """Returns the corpus of a folder, if it has the same settings."""
    record = read_json(folder / RECORD)
    for key, value in settings.items():
        if record.get(key) != value:
            raise ValueError(
                f"{folder} holds a corpus with another `{key}`: "
                f"{record.get(key)!r}. Received: {value!r}. "
                "Name another folder, or remove this one."
            )
    return Corpus(folder, record)


def _check_paths(paths) -> list[Path]:
    """Returns the paths as a list; refuses missing files."""
    if isinstance(paths, str | Path):
        raise ValueError(
            f"`paths` must be a list of files. Received: {str(paths)!r}."
        )
    paths = [Path(path) for path in paths]
    if not paths:
        raise ValueError("`paths` must name at least one file. Received: [].")
    for path in paths:
        check_text(str(path), "paths")
        if not path.is_file():
            raise FileNotFoundError(f"No text file at {path}.")
    return paths


def _check_options(held_out, shard_tokens) -> None:
    if not 0 <= held_out < 1:
        raise ValueError(f"`held_out` must be in [0, 1). Received: {held_out}.")
    if shard_tokens < 1:
        raise ValueError(
            f"`shard_tokens` must be >= 1. Received: {shard_tokens}."
        )
