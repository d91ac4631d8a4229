"""Tables in files: CSV, TSV, JSON lines, JSON and Parquet, row by row.

A table knows the names of its columns, and reads those that are asked for, so
that memory follows what is kept. The file and the line are named where
something is wrong.
"""

import contextlib
import csv
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertbook.files import (
    LONGEST_LINE,
    DataFile,
    check_no_pointer,
    parse_json,
)

DELIMITERS = ",;\t|"
SAMPLE = 21  # records that show which delimiter a file has
EXCEL_MARK = re.compile(r'"?sep=(.)"?')  # the first line of Excel's files
QUOTED_FIELD = re.compile(r'"(?:[^"]|"")*"')

# Where a row stands, such as "line 3", and its values, or what is wrong.
Row = tuple[str, list[Any] | ValueError]


@dataclass(frozen=True)
class Table:
    """A table in a file.

    Attributes:
        names: Its columns, in order.
        read: Takes names of columns, and yields for each row its place, such
            as "line 3", and their values; or an error that names both, where
            the row does not fit.
        typed: Whether values have types, as in JSON; else they are texts.
    """

    names: list[str]
    read: Callable[[Sequence[str]], Iterator[Row]]
    typed: bool


def open_csv(file: DataFile, known: Callable[[str], bool]) -> Table:
    """Opens a table that a comma, semicolon, tab or bar separates.

    The delimiter is that of a first line `sep=;`, as Excel writes it, else the
    one that gives all of the first records one width. Quotes are those of CSV.

    Args:
        file: The table; its first line has the names of the columns.
        known: Tells whether a name of a column says that it is one; it decides
            where two delimiters fit.

    Raises:
        ValueError: No single delimiter fits, or a record is not CSV.
    """
    mark = EXCEL_MARK.fullmatch(next(file.lines()).rstrip("\r\n"))
    if mark:
        return _delimited(file, _Form(mark[1], skip=1))
    return _delimited(file, _Form(_delimiter(file, known)))


def open_tsv(file: DataFile) -> Table:
    """Opens a table that tabs separate.

    Nothing is quoted, as in GLUE's files, except where the file as a whole can
    only be read with the quotes of CSV.

    Raises:
        ValueError: A record has quotes that do not fit.
    """
    return _delimited(file, _Form("\t", quoted=_has_quotes(file)))


@dataclass(frozen=True)
class _Form:
    """How a table is written: its delimiter, quotes, and lines to skip."""

    delimiter: str
    quoted: bool = True
    skip: int = 0
    spaced: bool = False  # whether a space follows each delimiter


def _delimited(file: DataFile, form: _Form) -> Table:
    """Returns a table of texts, of which the first record has the names."""
    _, header = next(_records(file, form), (0, []))
    if isinstance(header, ValueError):
        raise header
    if len(header) > 1 and all(name[:1] == " " for name in header[1:]):
        form = _Form(form.delimiter, form.quoted, form.skip, spaced=True)
    names = [name.strip() for name in header]
    if any("\0" in name for name in names):
        raise ValueError(
            f"{file} must be text in UTF-8. Received: NUL bytes in its first "
            "line, as UTF-16 and the own formats of Excel have."
        )

    def read(columns: Sequence[str]) -> Iterator[Row]:
        places = [names.index(column) for column in columns]
        for number, fields in itertools.islice(_records(file, form), 1, None):
            if isinstance(fields, ValueError):
                yield f"line {number}", fields
                continue
            if len(fields) != len(names):
                wrong = ValueError(
                    f"{file}, line {number}: there must be {len(names)} "
                    f"columns. Received: {len(fields)}."
                )
                yield f"line {number}", wrong
                continue
            yield f"line {number}", [fields[place] for place in places]

    return Table(names, read, typed=False)


def _records(
    file: DataFile, form: _Form
) -> Iterator[tuple[int, list[str] | ValueError]]:
    """Yields each record with the number of its last line, or its error.

    Raises:
        ValueError: A record of several lines is not CSV: a quote too many may
            have made one of many.
    """
    lines = itertools.islice(file.lines(), form.skip, None)
    if not form.quoted:
        for number, line in enumerate(lines, 1 + form.skip):
            if line.strip():
                yield number, line.rstrip("\r\n").split(form.delimiter)
        return
    reader = csv.reader(
        lines,
        delimiter=form.delimiter,
        skipinitialspace=form.spaced,
        strict=True,
    )
    with _long_fields():
        while True:
            before = reader.line_num + form.skip
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                number = reader.line_num + form.skip
                text = f"{file}, line {number}: {error}"
                if number > before + 1:
                    raise ValueError(
                        f"{text}; the row begins in line {before + 1}."
                    ) from error
                yield number, ValueError(f"{text}.")
            else:
                if fields:  # there are none in an empty line
                    yield reader.line_num + form.skip, fields


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Lets the `csv` module read fields as long as a line may be."""
    before = csv.field_size_limit(LONGEST_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter(file: DataFile, known: Callable[[str], bool]) -> str:
    """Returns the delimiter of a CSV file.

    Raises:
        ValueError: Several fit.
    """
    headers, fitting = {}, []
    for delimiter in DELIMITERS:
        records: list[list[str]] = []
        with contextlib.suppress(ValueError):  # not CSV with this one
            for _, fields in _records(file, _Form(delimiter)):
                if isinstance(fields, ValueError):
                    raise fields
                records.append(fields)
                if len(records) == SAMPLE:
                    break
            widths = {len(fields) for fields in records}
            if len(widths) == 1 and max(widths) > 1:
                fitting.append(delimiter)
        headers[delimiter] = records[0] if records else [""]
    if len(fitting) > 1:
        named = [d for d in fitting if any(map(known, headers[d]))]
        fitting = named or fitting
    if len(fitting) > 1:
        raise ValueError(
            f"{file} must have one delimiter. Received: columns by each of "
            f"{fitting}; begin the file with a line such as `sep=;`."
        )
    # Where none fits, the error is to name the line that is too short or long.
    return (fitting or sorted(DELIMITERS, key=lambda d: -len(headers[d])))[0]


def _has_quotes(file: DataFile) -> bool:
    """Returns whether a table with tabs has the quotes of CSV.

    It has where tabs alone give lines of different width, or where each field
    with a quote is quoted whole and some need it, or the first line is.
    """
    widths, needed, broken = set(), False, False
    for number, line in enumerate(file.lines()):
        fields = line.rstrip("\r\n").split("\t")
        if line.strip():
            widths.add(len(fields))
        marked = [field for field in fields if '"' in field]
        whole = [field for field in marked if QUOTED_FIELD.fullmatch(field)]
        broken |= len(whole) < len(marked)
        needed |= any('""' in field[1:-1] for field in whole)
        needed |= number == 0 and len(whole) == len(fields)
    return len(widths) > 1 or (needed and not broken)


def open_json_lines(
    file: DataFile,
    known: Callable[[str], bool],
    plain: Callable[[Any], Any] = lambda value: value,
) -> Table:
    """Opens a table of which each line is a JSON object.

    Args:
        file: The table.
        known: Tells whether a name of a column says that it is one.
        plain: Makes an object of another value that stands for one.

    Raises:
        ValueError: No line is a JSON object. Reading finds those that are
            none, lack a column that is read, or have one that the first lacks.
    """
    return _table_of_objects(file, lambda: _objects(file, plain), known)


def open_json(
    file: DataFile, values: Any, known: Callable[[str], bool]
) -> Table:
    """Opens what a JSON file holds: a list of objects, or lists by column.

    Args:
        file: The file, for messages.
        values: What was read from it.
        known: Tells whether a name of a column says that it is one.

    Raises:
        ValueError: It is neither, or the lists differ in length.
    """
    if isinstance(values, Mapping) and _are_columns(values):
        lengths = {name: len(column) for name, column in values.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"{file} must hold lists of one length. Received: {lengths}."
            )
        values = [
            dict(zip(values, row, strict=True))
            for row in zip(*values.values(), strict=True)
        ]
    if not isinstance(values, list):
        raise ValueError(
            f"{file} must hold a list of objects, one for each row, an object "
            "of lists, one for each column, or questions as SQuAD has them. "
            f"Received: {type(values).__name__}."
        )

    def rows() -> Iterator[tuple[str, Any]]:
        for number, value in enumerate(values):
            yield f"row {number}", _object(file, f"row {number}", value)

    return _table_of_objects(file, rows, known)


def _are_columns(values: Mapping) -> bool:
    """Returns whether a JSON object has a list for each column."""
    return bool(values) and all(isinstance(x, list) for x in values.values())


def _table_of_objects(
    file: DataFile,
    rows: Callable[[], Iterator[tuple[str, Any]]],
    known: Callable[[str], bool],
) -> Table:
    """Returns a table of JSON objects, which all have the columns read.

    Other keys may be in some rows alone, but for one that would be a column
    if the first row had it.

    Raises:
        ValueError: There are rows, and none is an object.
    """
    error, names = None, []
    for _, value in rows():
        if not isinstance(value, ValueError):
            names = list(value)
            break
        error = error or value
    if error and not names:
        raise error

    def read(columns: Sequence[str]) -> Iterator[Row]:
        for place, value in rows():
            if isinstance(value, ValueError):
                yield place, value
                continue
            lacking = [name for name in columns if name not in value]
            new = [name for name in value.keys() - set(names) if known(name)]
            if lacking or new:
                said = "without" if lacking else "with"
                wrong = ValueError(
                    f"{file}, {place}: the columns must be those of the first "
                    f"row. Received: a row {said} {min(lacking or new)!r}."
                )
                yield place, wrong
                continue
            yield place, [value[column] for column in columns]

    return Table(names, read, typed=True)


def _objects(
    file: DataFile, plain: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    """Yields the JSON object of each line that is not empty, or an error."""
    for number, line in enumerate(file.lines(), 1):
        if line.strip():
            place = f"line {number}"
            try:
                value = parse_json(line, f"{file}, {place}")
            except ValueError as error:
                yield place, error
            else:
                yield place, _object(file, place, plain(value))


def _object(
    file: DataFile, place: str, value: Any
) -> dict[str, Any] | ValueError:
    """Returns a JSON object, or the error for anything else."""
    if isinstance(value, dict):
        return value
    return ValueError(
        f"{file}, {place}: a row must be a JSON object. Received: "
        f"{type(value).__name__}."
    )


def open_parquet(file: DataFile) -> Table:
    """Opens a Parquet file, with pyarrow or with pandas.

    Raises:
        ImportError: Neither is installed.
        ValueError: The file is packed once more, or damaged.
    """
    check_no_pointer(file.path)
    if file.member is not None or file.path.suffix.lower() != ".parquet":
        raise ValueError(f"{file} must be unpacked: Parquet is packed itself.")
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return _open_with_pandas(file)
    try:
        names = ParquetFile(file.path).schema_arrow.names
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file} is damaged: {_reason(error)}.") from error

    def read(columns: Sequence[str]) -> Iterator[Row]:
        count = itertools.count()
        try:
            with ParquetFile(file.path) as opened:
                for batch in opened.iter_batches(columns=list(columns)):
                    table = batch.to_pydict()
                    for row in zip(*map(table.get, columns), strict=True):
                        yield f"row {next(count)}", list(row)
        except (ArrowException, OSError) as error:
            raise ValueError(f"{file} is damaged: {_reason(error)}.") from error

    return Table(list(names), read, typed=True)


def _open_with_pandas(file: DataFile) -> Table:
    """Opens a Parquet file with pandas and what it reads Parquet with.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import pandas

        frame = pandas.read_parquet(file.path)
    except ImportError as error:
        raise ImportError(
            f"{file} needs pyarrow, which reads Parquet: `pip install pyarrow`."
        ) from error
    except (ValueError, OSError) as error:
        raise ValueError(f"{file} is damaged: {_reason(error)}.") from error

    def read(columns: Sequence[str]) -> Iterator[Row]:
        lists = [frame[column].tolist() for column in columns]
        for number, row in enumerate(zip(*lists, strict=True)):
            yield f"row {number}", [_plain(value) for value in row]

    return Table(list(map(str, frame.columns)), read, typed=True)


def _plain(value: Any) -> Any:
    """Returns an array as a list, and anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _reason(error: Exception) -> str:
    """Returns what another library says of a file, for a sentence."""
    return str(error).rstrip(".")
