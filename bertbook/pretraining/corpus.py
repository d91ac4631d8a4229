"""`Corpus`: text files as shards of token ids, made once.

A shard holds whole documents: their ids in one row, and where sentences and
documents begin. Documents are mixed on the way, so that neighbors in a file
do not stay neighbors in a shard. One seed, one set of files: one result.
`beam_corpus` makes the same shards with several machines.

Differences: Google's generator keeps every document in memory as strings.
"""

import contextlib
import hashlib
import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.checks import check_text, is_integer
from bertbook.files import (
    DAMAGES,
    OPENERS,
    check_folder,
    check_no_pointer,
    files_named,
    hash_file,
    parse_json,
    read_json,
    write_json,
    write_whole,
)
from bertbook.pretraining.remote_files import is_url, open_url
from bertbook.text.sentences import split_sentences
from bertbook.training.settings import (
    checked_count,
    checked_seed,
    checked_share,
)

RECORD = "corpus.json"
PARTS = "train", "held_out"
SHARD_NAMES = tuple(f"{part}-{{:05d}}.safetensors" for part in PARTS)
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


class EncodedDocument(NamedTuple):
    """One document as token ids.

    Attributes:
        tokens: Every id, `(n,)`, uint16 or int32.
        lengths: How many of them each sentence has, `(sentences,)`, int64.
    """

    tokens: np.ndarray
    lengths: np.ndarray


class SizedDocument(NamedTuple):
    """One document as the mixing sees it: its number and its tokens."""

    number: int
    tokens: int


@dataclass(frozen=True)
class Corpus:
    """A folder of shards, here or at a URL.

    Attributes:
        folder: Where they are; a URL is a string.
        record: What `corpus.json` says of them.
    """

    folder: Path | str
    record: dict[str, Any]

    def shards(self, part: str = "train") -> list[Path | str]:
        """Returns the files of a part: "train" or "held_out"."""
        return [
            join_name(self.folder, shard_name(part, number))
            for number in range(self.record["shards"][part])
        ]


FEW_SENTENCES = 1.05  # a document, which give no pairs
MOST_SHARDS = 1_000_000  # in a part; their names are made at once


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
        with open(path, "rb") as file:
            yield from file_documents(file, path)


def file_documents(file: BinaryIO, path: str | Path) -> Iterator[list[str]]:
    """Yields the documents of one open file, each a list of its lines.

    Args:
        file: The bytes of the file, packed or not.
        path: Its name, by which it is unpacked and named in messages.

    Raises:
        ValueError: As in `read_documents`.
    """
    is_empty = True
    with unpacked(file, path) as content:
        lines = (text for _, text in read_lines(content, path))
        for document in split_documents(lines, path):
            is_empty = False
            yield document
    if is_empty:
        raise ValueError(
            f"{path} must hold text. Received: no line with a character."
        )


@contextlib.contextmanager
def unpacked(file: BinaryIO, path: str | Path) -> Iterator[Any]:
    """Yields the content of an open file, unpacked where its name says so.

    Args:
        file: The bytes of the file, packed or not.
        path: Its name.

    Raises:
        ValueError: The file is damaged.
    """
    opener = OPENERS.get(Path(path).suffix, contextlib.nullcontext)
    try:
        with opener(file) as content:
            yield content
    except DAMAGES as error:
        raise ValueError(f"{path} is damaged: {error}.") from error


def read_lines(
    file: BinaryIO, path: str | Path, position: int = 0
) -> Iterator[tuple[int, str]]:
    """Yields where each line begins, in bytes, and its text, stripped.

    Args:
        file: The content of a file, from a line's beginning on.
        path: Its name, for messages.
        position: How many bytes of the file are before that.

    Raises:
        ValueError: A line is not UTF-8, or has no end.
    """
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        _check_size(len(line), LONGEST_LINE, "line", path, number)
        yield position, _decode(line, path, position, number)
        position += len(line)


def split_documents(
    lines: Iterable[str], path: str | Path
) -> Iterator[list[str]]:
    """Yields documents, each a list of its lines; an empty line ends one.

    Args:
        lines: The stripped lines of a file, or of a piece of it.
        path: Its name, for messages.

    Raises:
        ValueError: A document has no end.
    """
    document: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if line:
            document.append(line)
            size += len(line) + LINE_COST
            _check_size(size, LONGEST_DOCUMENT, "document", path, number)
        elif document:
            yield document
            document, size = [], 0
    if document:
        yield document


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
            range, `folder` is a URL, or it holds the shards of another corpus.
        OSError: The disk is full, or `folder` cannot be written.
    """
    options = checked_options(held_out, seed, shard_tokens)
    paths = check_files(paths)
    if is_url(folder):
        raise ValueError(
            "`folder` must be a folder of this machine; "
            "`beam_corpus.prepare_with_beam` writes to a URL. Received: "
            f"{folder!r}."
        )
    settings = {
        "files": [[path.name, path.stat().st_size] for path in paths],
        "sha256": [hash_file(path) for path in paths],
        "vocabulary": vocabulary_hash(tokenizer),
        **options,
    }
    folder = Path(folder)
    if (folder / RECORD).is_file():
        record = read_json(folder / RECORD)
        if not gives_way(record, settings, folder, replace):
            return Corpus(folder, record)
        _remove_shards(folder)
    folder.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(PARTS, 0)
    totals = dict.fromkeys(("documents", "sentences", "tokens"), 0)
    documents = encode_documents(read_documents(paths), tokenizer)
    for part, shard in _mix(documents, **options):
        name = shard_name(part, counts[part])
        with write_whole(folder / name) as file:
            safetensors.numpy.save_file(vars(shard), file)
        counts[part] += 1
        totals["documents"] += len(shard)
        totals["sentences"] += len(shard.sentences) - 1
        totals["tokens"] += len(shard.tokens)
    record = make_record(settings, counts, totals, paths)
    write_json(folder / RECORD, record)  # now the folder counts as whole
    return Corpus(folder, record)


def checked_options(
    held_out: float, seed: int, shard_tokens: int
) -> dict[str, Any]:
    """Returns the options of `prepare`, as its record has them.

    Raises:
        ValueError: An option is out of range.
    """
    return {
        "held_out": checked_share(held_out, "held_out", one=False),
        "seed": checked_seed(seed),
        "shard_tokens": checked_count(shard_tokens, "shard_tokens"),
    }


def make_record(
    settings: dict[str, Any],
    shards: dict[str, int],
    totals: dict[str, int],
    paths: Sequence[str | Path],
) -> dict[str, Any]:
    """Returns what `corpus.json` says of a corpus.

    Args:
        settings: What the corpus was made of.
        shards: How many each part has.
        totals: How many documents, sentences and tokens there are.
        paths: The text files, for messages.

    Raises:
        ValueError: No document is left to train on.
    """
    if not shards["train"]:
        raise ValueError(
            "A corpus must hold text that is not held out. Received: "
            f"{totals['documents']} documents in "
            f"{', '.join(map(str, paths))}."
        )
    count = totals["documents"]
    if count >= 20 and totals["sentences"] <= FEW_SENTENCES * count:
        warnings.warn(
            "Nearly every document is one sentence, so that hardly any pair "
            "is IsNext: is there an empty line after every sentence? An empty "
            f"line ends a document. Received: {totals['documents']:,} "
            f"documents of {totals['sentences']:,} sentences.",
            stacklevel=3,
        )
    return {**settings, "shards": shards, **totals}


def shard_name(part: str, number: int) -> str:
    """Returns the name of the file of a shard."""
    return SHARD_NAMES[PARTS.index(part)].format(number)


def join_name(folder: Path | str, name: str) -> Path | str:
    """Returns the path or the URL of a file in a folder."""
    if isinstance(folder, Path):
        return folder / name
    return f"{folder}/{name}"


def open_corpus(folder: str | Path) -> Corpus:
    """Opens a corpus that was prepared before, here or at a URL.

    Shards at a URL are read when they are needed and are not kept: an epoch
    reads each of them once. A run of many epochs may keep them on its disk by
    a URL of fsspec, such as "simplecache::s3://bucket/corpus".

    Args:
        folder: A folder, or a URL such as "gs://bucket/corpus", which fsspec
            and its package for the protocol read.

    Raises:
        FileNotFoundError: `folder` holds no `corpus.json`.
        ImportError: A package that reads the URL is missing.
        ValueError: `corpus.json` is damaged or no record of a corpus.
    """
    if is_url(folder):
        folder = str(folder).rstrip("/")
        record = _read_remote_record(folder)
    else:
        folder = check_folder(folder)
        if not (folder / RECORD).is_file():
            raise _no_corpus(folder)
        record = read_json(folder / RECORD)
    shards = record.get("shards")
    has_shards = isinstance(shards, dict) and all(
        is_integer(shards.get(part)) and 0 <= shards[part] <= MOST_SHARDS
        for part in PARTS
    )
    if not has_shards:
        raise ValueError(
            f"{join_name(folder, RECORD)} must say how many `shards` are in "
            f"{' and '.join(PARTS)}. Received: {shards!r}."
        )
    return Corpus(folder, record)


def _read_remote_record(folder: str) -> dict[str, Any]:
    """Returns what the `corpus.json` at a URL holds."""
    url = f"{folder}/{RECORD}"
    try:
        with open_url(url) as file:
            return parse_record(file.read(), url)
    except FileNotFoundError as error:
        raise _no_corpus(folder) from error


def parse_record(content: bytes, name: str) -> dict[str, Any]:
    """Returns the JSON object that a file holds.

    Args:
        content: The bytes of the file.
        name: Its path or URL, for messages.

    Raises:
        ValueError: It is damaged, or holds no object.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not valid JSON: {error}.") from error
    record = parse_json(text, name)
    if not isinstance(record, dict):
        raise ValueError(
            f"{name} must hold a JSON object. Received: "
            f"{type(record).__name__}."
        )
    return record


def _no_corpus(folder: str | Path) -> FileNotFoundError:
    """Returns the error of a folder that holds no corpus."""
    return FileNotFoundError(
        f"No {RECORD} in {folder}. `bertbook prepare` writes it last, when "
        "every shard is written."
    )


def check_vocabulary(corpus: Corpus, tokenizer: Any) -> None:
    """Refuses a tokenizer other than the one a corpus was prepared with.

    Raises:
        ValueError: The vocabularies differ.
    """
    expected = corpus.record.get("vocabulary")
    if expected not in (None, vocabulary_hash(tokenizer)):
        raise ValueError(
            "`tokenizer` must be the one that the corpus in "
            f"{corpus.folder} was prepared with. Received: another, of "
            f"{len(tokenizer)} pieces."
        )


def read_shard(path: str | Path) -> Shard:
    """Reads one shard, from a file or a URL.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: A package that reads the URL is missing.
        ValueError: The file is damaged.
    """
    try:
        if is_url(path):
            with open_url(path) as file:
                return Shard(**safetensors.numpy.load(file.read()))
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


def _decode(line: bytes, path: str | Path, position: int, number: int) -> str:
    """Returns a line as text, stripped; refuses what is no text."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be UTF-8. Received: byte {line[error.start]:#04x} "
            f"at {position + error.start}, in line {number}."
        ) from error
    return text.strip("\ufeff").strip()


def encode_documents(
    documents: Iterable[list[str]], tokenizer: Any
) -> Iterator[EncodedDocument]:
    """Yields documents as ids; many go to the tokenizer in one call.

    Args:
        documents: Lists of lines.
        tokenizer: A `Tokenizer`.

    Yields:
        Every document that gives a token.
    """
    dtype = "uint16" if len(tokenizer) <= 2**16 else "int32"
    for batch in _gather(documents):
        texts = list(itertools.chain.from_iterable(batch))
        rows = iter(tokenizer.encode_pieces(texts))
        for document in batch:
            sentences = list(itertools.islice(rows, len(document)))
            lengths = [n for row in sentences for n in _cut(len(row))]
            if lengths:
                ids = itertools.chain.from_iterable(sentences)
                tokens = np.fromiter(ids, dtype)
                yield EncodedDocument(tokens, np.array(lengths))


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
    """Yields the part and the shard of documents in mixed order."""
    waiting: dict[int, EncodedDocument] = {}

    def read_counts() -> Iterator[int]:
        for number, document in enumerate(documents):
            waiting[number] = document
            yield len(document.tokens)

    plan = plan_shards(read_counts(), held_out, seed, shard_tokens)
    for part, numbers in plan:
        yield part, join_documents([waiting.pop(n) for n in numbers])


def plan_shards(
    counts: Iterable[int], held_out: float, seed: int, shard_tokens: int
) -> Iterator[tuple[str, list[int]]]:
    """Yields the part of each shard, and the numbers of its documents.

    A document goes to either part by chance, then into a pool from which
    shards are drawn: documents from far apart can meet. Two documents at least
    stay in the pool, so that no shard holds a single one, which gives no pair.

    Args:
        counts: How many tokens each document has, in the order of the files.
            They are read as the shards need them.
        held_out: As in `prepare`.
        seed: As in `prepare`.
        shard_tokens: As in `prepare`.
    """
    rng = np.random.default_rng(seed)
    pools: dict[str, list[SizedDocument]] = {part: [] for part in PARTS}
    held = dict.fromkeys(PARTS, 0)  # tokens in each pool
    for document in itertools.starmap(SizedDocument, enumerate(counts)):
        part = "held_out" if rng.random() < held_out else "train"
        pools[part].append(document)
        held[part] += document.tokens
        while held[part] >= MIXED_TOKENS and len(pools[part]) >= 4:
            drawn = _draw(pools[part], rng, shard_tokens, 2)
            held[part] -= _count_tokens(drawn)
            yield part, [document.number for document in drawn]
    _move_singles(pools, held, rng)
    for part, pool in pools.items():
        while pool:
            if held[part] < 2 * shard_tokens or len(pool) < 4:
                drawn = _draw(pool, rng, held[part], 0)  # all that is left
            else:
                drawn = _draw(pool, rng, shard_tokens, 2)
            held[part] -= _count_tokens(drawn)
            yield part, [document.number for document in drawn]


def _count_tokens(documents: list[SizedDocument]) -> int:
    """Returns how many tokens documents have together."""
    return sum(document.tokens for document in documents)


def _move_singles(pools, held, rng) -> None:
    """Moves a document where a part holds a single one."""
    for part, other_part in ("train", "held_out"), ("held_out", "train"):
        if len(pools[part]) != 1 or not pools[other_part]:
            continue
        takes = part == "train" or len(pools[other_part]) > 2
        giver, taker = (other_part, part) if takes else (part, other_part)
        document = pools[giver].pop(int(rng.integers(len(pools[giver]))))
        pools[taker].append(document)
        held[giver] -= document.tokens
        held[taker] += document.tokens


def _draw(
    pool: list[SizedDocument], rng: Any, size: int, spared: int
) -> list[SizedDocument]:
    """Takes documents, two at least, until they hold `size` tokens.

    The last `spared` ones stay in the pool.
    """
    drawn: list[SizedDocument] = []
    count = 0
    while len(pool) > spared and (count < size or len(drawn) < 2):
        place = int(rng.integers(len(pool)))
        pool[place], pool[-1] = pool[-1], pool[place]
        drawn.append(pool.pop())
        count += drawn[-1].tokens
    return drawn


def join_documents(documents: Sequence[EncodedDocument]) -> Shard:
    """Returns documents as one shard, in their order."""
    lengths = np.concatenate([document.lengths for document in documents])
    return Shard(
        tokens=np.concatenate([document.tokens for document in documents]),
        sentences=np.cumsum([0, *lengths]),
        documents=np.cumsum([0, *(len(d.lengths) for d in documents)]),
    )


def gives_way(
    record: dict[str, Any],
    settings: dict[str, Any],
    folder: Path | str,
    replace: bool,
) -> bool:
    """Returns whether the corpus of a folder is replaced by another.

    Args:
        record: What `corpus.json` in the folder says.
        settings: What the other corpus is made of.
        folder: The folder, for messages.
        replace: Whether a corpus with other settings gives way.

    Raises:
        ValueError: It has other settings and does not give way.
    """
    key = _differing(record, settings)
    if key is None or replace:
        return key is not None
    raise ValueError(
        f"{folder} holds a corpus with another `{key}`: "
        f"{record.get(key)!r}. Received: {settings[key]!r}. "
        "Name another folder, or remove this one."
    )


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
        for path in files_named(folder, name):
            path.unlink()


def corpus_content(corpus: Any, held_out: float) -> dict[str, Any]:
    """Returns what a corpus is made of, so that a run knows it again.

    Args:
        corpus: Text files, or a `Corpus`. Every byte is read once, of shards
            at a URL too.
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
    digest = hashlib.sha256()
    for path in shards:
        name = str(path).rpartition("/")[2] if is_url(path) else Path(path).name
        digest.update(f"{name} {_hash_shard(path)}\n".encode())
    once = corpus.record.get("once", 0)
    return {"shards": digest.hexdigest(), "once": once}


def _hash_shard(path: str | Path) -> str:
    """Returns the SHA-256 of a shard; refuses a missing one."""
    try:
        if not is_url(path):
            return hash_file(Path(path))
        with open_url(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"No shard at {path}.") from error


def check_files(paths) -> list[Path]:
    """Returns the paths as a list; refuses missing files.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: `paths` is a string, or empty.
    """
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
        check_no_pointer(path)
    return paths


def _checked_name(path) -> str:
    """Returns the name of a file; refuses what is none."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ValueError(f"`paths` must hold names. Received: {path!r}.")
    return os.fspath(path)
