r"""`prepare_with_beam`: the shards of a corpus, made by a pipeline of Beam.

    files -> pieces -> blocks of ids -------------------> shards
                    \-> tokens of each document -> plan -/

The workers cut text files into pieces, between documents, and encode each piece
by itself. One of them plans all shards from the number of tokens of each
document, as `corpus.prepare` does. Then every shard gets its documents, in the
order of the plan. So neither the number of workers nor the pieces change a byte
of the result.
"""

import contextlib
import hashlib
import itertools
import json
import operator
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import safetensors.numpy

from bertbook.checks import check_text, checked_list
from bertbook.files import OPENERS, check_folder
from bertbook.pretraining import beam_files
from bertbook.pretraining.corpus import (
    PARTS,
    RECORD,
    SHARD_NAMES,
    SHARD_TOKENS,
    Corpus,
    EncodedDocument,
    Shard,
    check_files,
    checked_options,
    encode_documents,
    file_documents,
    gives_way,
    join_documents,
    make_record,
    parse_record,
    plan_shards,
    read_lines,
    shard_name,
    split_documents,
    unpacked,
    vocabulary_hash,
)
from bertbook.pretraining.remote_files import is_url

PIECE_BYTES = 2**22  # of a plain text file, about, that a worker reads at once
BLOCK_TOKENS = 2**20  # of encoded documents that go through Beam together
# Runs here; "DirectRunner" would first download a program and try that.
DEFAULT_OPTIONS = ("--runner=FnApiRunner",)
WORK = ".preparing"  # the sub-folder of what is not whole yet
HASHES = "sha256.json"
PLAN = "plan.json"
WORK_FILES = HASHES, PLAN
BLOCKS, REPORTS, PLACES = "blocks", "reports", "places"
PATTERN_CHARACTERS = frozenset("*?[]{}")


class TextFile(NamedTuple):
    """A text file.

    Attributes:
        number: Its place in the list.
        name: Its path or URL, as messages name it.
        path: The same, as every worker finds it.
        size: How many bytes it has.
    """

    number: int
    name: str
    path: str
    size: int


class Piece(NamedTuple):
    """The part of a text file that a worker reads by itself.

    It holds the documents that follow an empty line between `start` and `end`,
    in bytes; the first document of the file too, where `start` is 0. The only
    piece of a packed file has no `end`.
    """

    file: int
    path: str
    start: int
    end: int | None


class Report(NamedTuple):
    """What the plan is made of: the documents of a block, without their ids.

    Attributes:
        key: The file, the first byte of the piece, and the block in it.
        counts: How many tokens each document has, `(documents,)`, int64.
        sentences: How many sentences all have.
        refusal: What is wrong with the text, or nothing.
    """

    key: tuple[int, int, int]
    counts: np.ndarray
    sentences: int
    refusal: str


def prepare_with_beam(
    paths: Sequence[str | Path],
    tokenizer: Any,
    folder: str | Path,
    *,
    held_out: float = 0.01,
    seed: int = 0,
    shard_tokens: int = SHARD_TOKENS,
    replace: bool = False,
    options: Sequence[str] | None = None,
) -> Corpus:
    """Writes the shards of a corpus by many workers, or finds them written.

    They are those that `corpus.prepare` writes, byte for byte. `corpus.json` is
    written last: a call that was killed leaves none, and the next call starts
    again.

    Args:
        paths: Text files, or URLs that Beam reads, such as "gs://bucket/a.txt".
            Several workers share a plain file; a packed one takes one worker.
        tokenizer: A `Tokenizer`.
        folder: Where the shards go: a folder that all workers see, or a URL.
        held_out: Share of the documents that no training example comes from,
            each drawn by itself; at least two, or none.
        seed: Seed of the mixing and of the choice of held-out documents.
        shard_tokens: About how many tokens a shard holds.
        replace: Whether the shards of another corpus give way to these.
        options: Options of Beam, such as "--runner=DataflowRunner". Without a
            runner the pipeline runs here, by one process; by four with
            "--direct_num_workers=4" and
            "--direct_running_mode=multi_processing".

    Returns:
        The corpus. Where `folder` holds it already, the files are read once to
        see that they are the same, and no shard is written.

    Raises:
        FileNotFoundError: A path is not a file.
        ImportError: Beam is missing.
        ValueError: There is no text, a file is not UTF-8, an option is out of
            range, or `folder` holds the shards of another corpus.
        OSError: The pipeline failed; the error of Beam is the cause.
    """
    chosen = checked_options(held_out, seed, shard_tokens)
    runner_options = _pipeline_options(options)
    files = _find_files(paths)
    target = _check_target(folder)
    work = beam_files.join(target, WORK)
    settings = {
        "files": [[Path(file.path).name, file.size] for file in files],
        "sha256": [],  # the workers will tell
        "vocabulary": vocabulary_hash(tokenizer),
        **chosen,
    }
    place = str(folder) if is_url(folder) else Path(folder)
    beam_files.remove_folder(work, WORK_FILES)  # of a call that was killed
    try:
        record = _read_record(target)
        if record is not None:
            with _pipeline(runner_options) as pipeline:
                _add_hashes(pipeline, files, work)
            settings["sha256"] = _read_result(work, HASHES)["sha256"]
            if not gives_way(record, settings, place, replace):
                return Corpus(place, record)
            _remove_corpus(target)
        with _pipeline(runner_options) as pipeline:
            _add_hashes(pipeline, files, work)
            _add_shards(pipeline, files, tokenizer, chosen, target)
        settings["sha256"] = _read_result(work, HASHES)["sha256"]
        plan = _read_result(work, PLAN)
        _refuse_texts(files, plan["refusals"])
        names = [file.name for file in files]
        record = make_record(settings, plan["shards"], plan["totals"], names)
        _write_json(beam_files.join(target, RECORD), record, work)
    finally:
        beam_files.remove_folder(work, WORK_FILES)
    return Corpus(place, record)


# Before and after the pipeline, in the process that starts it.


def _pipeline_options(options: Sequence[str] | None) -> Any:
    """Returns the options of Beam, and lets its file systems know them."""
    words = checked_list([] if options is None else options, "options")
    for word in words:
        check_text(word, "options")
    systems = beam_files.file_systems()
    from apache_beam.options.pipeline_options import PipelineOptions

    made = PipelineOptions([*DEFAULT_OPTIONS, *words])
    systems.set_options(made)
    return made


def _find_files(paths: Sequence[str | Path]) -> list[TextFile]:
    """Returns the text files with their sizes; refuses missing ones."""
    has_urls = isinstance(paths, list | tuple) and any(map(is_url, paths))
    names = paths if has_urls else check_files(paths)
    return [_find_file(number, name) for number, name in enumerate(names)]


def _find_file(number: int, name: str | Path) -> TextFile:
    """Returns a text file with its size; refuses a missing one."""
    if is_url(name):
        size = beam_files.file_size(str(name))
    else:
        (name,) = check_files([name])
        size = name.stat().st_size
    return TextFile(number, str(name), beam_files.absolute(name), size)


def _check_target(folder: str | Path) -> str:
    """Returns the path or the URL of the folder that is written."""
    name = str(folder).rstrip("/") if is_url(folder) else check_folder(folder)
    target = beam_files.absolute(name)
    if PATTERN_CHARACTERS & set(target):
        raise ValueError(
            "`folder` must hold none of * ? [ ] { }, by which Beam finds "
            f"files. Received: {target!r}."
        )
    return target


def _read_record(target: str) -> dict[str, Any] | None:
    """Returns what `corpus.json` says, None where there is none."""
    path = beam_files.join(target, RECORD)
    if not beam_files.file_systems().exists(path):
        return None
    with beam_files.open_file(path) as file:
        return parse_record(file.read(), path)


def _remove_corpus(target: str) -> None:
    """Removes a corpus; first the record, without which it is none."""
    for name in (RECORD, *SHARD_NAMES):
        beam_files.remove_files(target, name)


def _read_result(work: str, name: str) -> dict[str, Any]:
    """Returns what a step of the pipeline wrote down."""
    with beam_files.open_file(beam_files.join(work, name)) as file:
        return json.loads(file.read())


def _write_json(path: str, values: dict[str, Any], work: str) -> None:
    """Writes a JSON object as `files.write_json` does."""
    text = json.dumps(values, indent=2) + "\n"
    beam_files.write_file(path, text.encode("utf-8"), work)


def _refuse_texts(files: list[TextFile], refusals: list[Any]) -> None:
    """Raises what `corpus.prepare` does for the first bad text.

    A piece knows neither the lines before it nor whether the rest of its file
    holds text. So a file that a worker refused, or that gave no token, is read
    once more, from its beginning.
    """
    for number, refusal in refusals:
        name = files[number].name
        with beam_files.open_file(files[number].path) as file:
            for _ in file_documents(file, name):
                pass
        if refusal:  # else there was text, of which no token came
            raise ValueError(
                f"{name} must stay as it is while it is read. "
                f"Received: {refusal}"
            )


# The pipeline.


@contextlib.contextmanager
def _pipeline(options: Any) -> Iterator[Any]:
    """Yields an empty pipeline, which runs at the end of the `with` statement.

    Raises:
        OSError: The pipeline failed. What Beam raises depends on the runner.
    """
    import apache_beam as beam
    from apache_beam.runners.runner import PipelineState

    pipeline = beam.Pipeline(options=options)
    yield pipeline
    try:
        state = pipeline.run().wait_until_finish()
    except Exception as error:
        reason = (str(error).strip() or repr(error)).splitlines()[-1]
        raise OSError(f"The pipeline failed: {reason}") from error
    if state != PipelineState.DONE:
        raise OSError(f"The pipeline must end as DONE. Received: {state}.")


def _add_hashes(pipeline: Any, files: list[TextFile], work: str) -> None:
    """Adds the steps that write down the SHA-256 of each file."""
    import apache_beam as beam

    _ = (
        pipeline
        | "list files to hash" >> beam.Create(files)
        | "share files" >> beam.Reshuffle()
        | "hash files" >> beam.Map(hash_text_file)
        | "gather hashes" >> beam.GroupByKey()
        | "write hashes" >> beam.Map(write_hashes, work)
    )


def _add_shards(
    pipeline: Any,
    files: list[TextFile],
    tokenizer: Any,
    options: dict[str, Any],
    target: str,
) -> None:
    """Adds the steps that write the plan and the shards."""
    import apache_beam as beam

    work = beam_files.join(target, WORK)
    encoded = (
        pipeline
        | "list files" >> beam.Create(files)
        | "split files" >> beam.FlatMap(split_file)
        | "share pieces" >> beam.Reshuffle()
        | "encode pieces"
        >> beam.FlatMap(encode_piece, tokenizer).with_outputs(
            REPORTS, main=BLOCKS
        )
    )
    places = (
        encoded[REPORTS]
        | "gather reports" >> beam.GroupByKey()
        | "plan shards" >> beam.FlatMap(plan_corpus, options, work)
    )
    _ = (
        {BLOCKS: encoded[BLOCKS], PLACES: places}
        | "meet" >> beam.CoGroupByKey()
        | "deal documents" >> beam.FlatMap(deal_documents)
        | "gather shards" >> beam.GroupByKey()
        | "write shards" >> beam.Map(write_shard, target)
    )


# The steps, which workers run.


def hash_text_file(file: TextFile) -> tuple[int, Any]:
    """Returns the number of a file and its SHA-256, under a single key."""
    with beam_files.open_file(file.path) as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return 0, (file.number, digest)


def write_hashes(grouped: tuple[int, Iterable[Any]], work: str) -> None:
    """Writes down the hashes, in the order of the files."""
    _, hashes = grouped
    values = {"sha256": [digest for _, digest in sorted(hashes)]}
    _write_json(beam_files.join(work, HASHES), values, work)


def split_file(file: TextFile) -> Iterator[Piece]:
    """Yields the pieces of a file; a packed file is a single one."""
    size = max(file.size, 1)
    if Path(file.path).suffix in OPENERS:
        yield Piece(file.number, file.path, 0, None)
        return
    for start in range(0, size, PIECE_BYTES):
        end = start + PIECE_BYTES
        yield Piece(file.number, file.path, start, end)


def encode_piece(piece: Piece, tokenizer: Any) -> Iterator[Any]:
    """Yields the blocks of a piece by their keys, and reports of them."""
    from apache_beam.pvalue import TaggedOutput

    def report(*values: Any) -> Any:
        return TaggedOutput(REPORTS, (0, Report(*values)))

    refusal = ""
    try:
        documents = encode_documents(read_piece(piece), tokenizer)
        for number, block in enumerate(_gather_blocks(documents)):
            key = piece.file, piece.start, number
            yield key, join_documents(block)
            counts = np.array([len(document.tokens) for document in block])
            sentences = sum(len(document.lengths) for document in block)
            yield report(key, counts, sentences, "")
    except ValueError as error:
        refusal = str(error)
    # A piece without a token is to be known of too.
    end = piece.file, piece.start, -1
    yield report(end, np.zeros(0, "int64"), 0, refusal)


def read_piece(piece: Piece) -> Iterator[list[str]]:
    """Yields the documents of a piece, each a list of its lines.

    Raises:
        ValueError: The file is damaged, not UTF-8, or has a line or a document
            without end.
    """
    with (
        beam_files.open_file(piece.path) as file,
        unpacked(file, piece.path) as content,
    ):
        lines = _piece_lines(content, piece)
        yield from split_documents(lines, piece.path)


def _piece_lines(file: BinaryIO, piece: Piece) -> Iterator[str]:
    """Yields the lines of the documents of a piece.

    An empty line between `start` and `end` opens the piece, and the first one
    from `end` on closes it: there the next piece begins.
    """
    is_open = piece.start == 0
    position = 0 if is_open else _find_line(file, piece)
    if position is None:
        return
    for begin, line in read_lines(file, piece.path, position):
        is_past = piece.end is not None and begin >= piece.end
        if is_past and not (is_open and line):
            return
        is_open = is_open or not line
        if is_open:
            yield line


def _find_line(file: BinaryIO, piece: Piece) -> int | None:
    """Goes to the first line that begins in a piece; None where none does."""
    position = piece.start - 1
    file.seek(position)
    while piece.end is None or position < piece.end:
        part = file.readline(PIECE_BYTES)
        position += len(part)
        if part.endswith(b"\n") or not part:
            return position
    return None


def _gather_blocks(
    documents: Iterable[EncodedDocument],
) -> Iterator[list[EncodedDocument]]:
    """Yields documents as lists, about a million tokens at a time."""
    block: list[EncodedDocument] = []
    count = 0
    for document in documents:
        block.append(document)
        count += len(document.tokens)
        if count >= BLOCK_TOKENS:
            yield block
            block, count = [], 0
    if block:
        yield block


def plan_corpus(
    grouped: tuple[int, Iterable[Report]], options: dict[str, Any], work: str
) -> Iterator[Any]:
    """Yields for each block where its documents go; writes down the sums.

    Args:
        grouped: All reports, under a single key.
        options: Those of `corpus.plan_shards`.
        work: The folder that the plan is written to.

    Yields:
        The key of a block, and for each of its documents the part, the shard
        and the place in it, `(documents, 3)`, int32. After a refusal, nothing.
    """
    reports = sorted(grouped[1], key=operator.attrgetter("key"))
    refusals = _find_refusals(reports)
    counts = np.concatenate([report.counts for report in reports])
    places = np.zeros((len(counts), 3), "int32")
    shards = dict.fromkeys(PARTS, 0)
    if not any(refusal for _, refusal in refusals):
        for part, documents in plan_shards(map(int, counts), **options):
            places[documents, 0] = PARTS.index(part)
            places[documents, 1] = shards[part]
            places[documents, 2] = np.arange(len(documents))
            shards[part] += 1
        sizes = [len(report.counts) for report in reports]
        cut = np.split(places, np.cumsum(sizes)[:-1])
        for report, rows in zip(reports, cut, strict=True):
            if len(rows):
                yield report.key, rows
    totals = {
        "documents": len(counts),
        "sentences": sum(report.sentences for report in reports),
        "tokens": int(counts.sum()),
    }
    values = {"refusals": refusals, "shards": shards, "totals": totals}
    _write_json(beam_files.join(work, PLAN), values, work)


def _find_refusals(reports: list[Report]) -> list[tuple[int, str]]:
    """Returns the files that are to be read again, and what is wrong."""
    found = []
    for number, group in itertools.groupby(reports, lambda r: r.key[0]):
        of_file = list(group)
        refusals = [report.refusal for report in of_file if report.refusal]
        if refusals or not any(len(report.counts) for report in of_file):
            found.append((number, refusals[0] if refusals else ""))
    return found


def deal_documents(grouped: tuple[Any, dict[str, Any]]) -> Iterator[Any]:
    """Yields the documents of a block, each by the shard that it goes to."""
    _, values = grouped
    for block, places in zip(values[BLOCKS], values[PLACES], strict=False):
        documents = _split_block(block)
        for document, place in zip(documents, places.tolist(), strict=True):
            part, shard, number = place
            yield (part, shard), (number, *document)


def _split_block(block: Shard) -> Iterator[EncodedDocument]:
    """Yields the documents that `join_documents` joined."""
    lengths = np.diff(block.sentences)
    for first, last in itertools.pairwise(block.documents):
        start, stop = block.sentences[first], block.sentences[last]
        yield EncodedDocument(block.tokens[start:stop], lengths[first:last])


def write_shard(grouped: tuple[Any, Iterable[Any]], target: str) -> None:
    """Writes a shard, its documents in the order of the plan."""
    (part, number), documents = grouped
    ordered = sorted(documents, key=operator.itemgetter(0))
    shard = join_documents([EncodedDocument(*rest) for _, *rest in ordered])
    path = beam_files.join(target, shard_name(PARTS[part], number))
    content = safetensors.numpy.save(vars(shard))
    beam_files.write_file(path, content, beam_files.join(target, WORK))
