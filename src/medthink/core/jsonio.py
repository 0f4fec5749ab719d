"""Strict JSON and JSON Lines.

Everything read here is checked more strictly than by the standard library: NaN, Infinity, duplicate keys, lone
surrogates, deep nesting, byte-order marks and whole numbers that 64 bits cannot hold are refused, and every error
names file, line and field. Lines are split on "\\n" alone, because U+2028 inside a string is data. Files are
streamed, never loaded.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec
import orjson

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading, refuse_known_start, write_atomic

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 254  # what is nested deeper cannot be written again
WHOLE_NUMBERS = range(-(2**63), 2**64)  # beyond these the parser would make a float of a whole number

_BOM = b"\xef\xbb\xbf"
# Every string of a valid JSON text, left to right; the group tells keys (":" follows) from values.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*+(:?)', re.DOTALL)
_KEY_ENDS = re.compile(rb'"[ \t\n\r]*+:')


class Line(NamedTuple):
    """One line of a JSON Lines file, with its number for error messages."""

    number: int
    value: Any


class RawLine(NamedTuple):
    """One unparsed line of a JSON Lines file, with its number and the byte it starts at."""

    number: int
    offset: int
    data: bytes


def parse_json(data: bytes, *, file: object = "", row: int | None = None) -> Any:
    """Parse one JSON text, or raise DataError."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        problem, remedy = _explain(data, error)
        raise DataError(problem, file=file, row=row, remedy=remedy) from None
    kept = _survey(value)
    if kept.depth > MAX_DEPTH:
        raise DataError(
            f"nested more than {MAX_DEPTH} deep", file=file, row=row, remedy="check that this is the right file"
        )
    # A dropped key leaves its quotes: with no more of them than surround what is kept, none was dropped.
    if data.count(b'"') != 2 * (kept.keys + kept.texts):
        _refuse_duplicate_key(data, kept.keys, file=file, row=row)
    if kept.has_float:
        _refuse_rounded_number(data, value, file=file, row=row)
    return value


def read_json(path: Path) -> Any:
    """Read a file that contains one JSON value."""
    with _reading(path) as stream:
        data = stream.read()
    return parse_json(data, file=path)


def read_jsonl(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Stream the values of a JSON Lines file."""
    for raw in read_lines(path, max_line_bytes=max_line_bytes):
        yield Line(raw.number, parse_line(raw, file=path))


def read_lines(path: Path, *, offset: int = 0, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[RawLine]:
    """Stream the lines of a JSON Lines file unparsed, from a byte that starts a line; numbers count from there.

    What makes the whole file unusable (empty, a byte-order mark, CRLF, an endless line) is raised here; what is wrong
    with one line only is left to `parse_line`, so that a caller can continue with the next.
    """
    with _reading(path) as stream:
        stream.seek(offset)
        number = 0
        while data := stream.readline(max_line_bytes + 1):
            number += 1
            _refuse_bad_file(data, file=path, row=number, max_line_bytes=max_line_bytes)
            yield RawLine(number, offset, data)
            offset += len(data)
        if number == 0:
            raise DataError("the file is empty", file=path, remedy="expected one JSON object per line")


def parse_line(line: RawLine, *, file: Path) -> Any:
    """Parse one line of a JSON Lines file, or raise DataError."""
    if line.data.isspace():
        raise DataError("the line is blank", file=file, row=line.number, remedy="remove it")
    return parse_json(line.data, file=file, row=line.number)


def encode_json(value: Any) -> bytes:
    """Encode compactly, keys in the order given."""
    return orjson.dumps(value)


def canonical_json(value: Any) -> bytes:
    """Encode so that equal values give equal bytes: sorted keys, no spaces, UTF-8."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value atomically, indented for reading."""
    write_atomic(path, [orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)])


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Write one JSON value per line, atomically, without keeping them all in memory."""
    write_atomic(path, (orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE) for value in values))


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """The open file; a disk error becomes DataError, so that part of a file is never mistaken for all of it."""
    with open_for_reading(path) as stream:
        try:
            yield stream
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=path, remedy="check the disk") from None


def _refuse_other_kind(raw: bytes, *, file: Path) -> None:
    """Raise DataError if the first line shows that this is not a JSON Lines file."""
    refuse_known_start(raw, file=file)
    start = raw[:64].strip()
    if start in (b"[", b"{") or re.match(rb"\[\s*\{", start):
        problem = "the file is a single JSON value, not JSON Lines"
        raise DataError(problem, file=file, remedy="write each object on one line of its own")


def _refuse_bad_file(raw: bytes, *, file: Path, row: int, max_line_bytes: int) -> None:
    if row == 1:
        _refuse_other_kind(raw, file=file)
    if len(raw) > max_line_bytes:
        raise DataError(
            f"the line is longer than {max_line_bytes:,} bytes",
            file=file, row=row, remedy="check that this is JSON Lines, one object per line",
        )  # fmt: skip
    if row == 1 and raw.startswith(_BOM):
        raise DataError("the file starts with a byte-order mark", file=file, row=1, remedy="save it as plain UTF-8")
    if raw.endswith(b"\r\n"):
        raise DataError("the line ends in CRLF", file=file, row=row, remedy="convert the line endings to LF")


def _explain(data: bytes, error: orjson.JSONDecodeError) -> tuple[str, str]:
    """Explain in plain words why a text is not JSON."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as bad:
        return f"not UTF-8 at byte {bad.start}", "save the file as UTF-8"
    if re.search(rb"(?<![\w\"])-?(NaN|Infinity)\b", data):
        return f"not JSON: {error}", "NaN and Infinity are not JSON; write null"
    if not data.rstrip().endswith((b"}", b"]")):
        return f"not JSON: {error}", "the file seems to be truncated; copy or download it again"
    return f"not JSON: {error}", "correct the text at that column"


class _Survey(NamedTuple):
    """What a parsed value contains, counted at every depth."""

    keys: int
    texts: int
    has_float: bool
    depth: int


def _survey(value: Any) -> _Survey:
    keys = texts = depth = 0
    has_float = False
    level: list[Any] = [[value]]
    while level:
        found: list[Any] = []
        for container in level:
            if type(container) is dict:
                keys += len(container)
                container = container.values()
            found += container
        # The parser makes no subclasses; nearly every value is text, and `type` is what tells it fastest.
        others = [each for each in found if type(each) is not str]
        texts += len(found) - len(others)
        has_float = has_float or float in map(type, others)
        level = [each for each in others if type(each) is dict or type(each) is list]
        depth += 1 if level else 0
    return _Survey(keys, texts, has_float, depth)


def _refuse_duplicate_key(data: bytes, kept: int, *, file: object, row: int | None) -> None:
    # No more places can be keys than have a colon behind a quote; that is found faster than what is a key.
    if len(_KEY_ENDS.findall(data)) != kept and _STRINGS.findall(data).count(b":") != kept:
        field = _find_duplicate_key(data)
        problem = "the same key is used twice in one object"
        raise DataError(problem, file=file, row=row, field=field, remedy="keep one of them")


def _find_duplicate_key(data: bytes) -> str:
    twice: list[str] = []

    def see(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                twice.append(key)
            seen.add(key)

    with suppress(RecursionError):  # what the first of the two held may be nested deeper than this parser goes
        json.loads(data, object_pairs_hook=see)
    return twice[0] if twice else ""


def _refuse_rounded_number(data: bytes, value: Any, *, file: object, row: int | None) -> None:
    """Raise DataError if the parser turned a whole number into a float."""
    # Nearly no float is so large, and only the slower parser tells which were written as whole numbers.
    if not any(type(number) is float and abs(number) >= 2**63 for _, number in _numbers(value)):
        return
    for field, number in _numbers(json.loads(data)):
        if type(number) is int and number not in WHOLE_NUMBERS:
            problem = "a whole number of more than 64 bits would be rounded"
            raise DataError(problem, file=file, row=row, field=field, remedy="write it as a string")


def _numbers(value: Any, field: str = "") -> Iterator[tuple[str, int | float]]:
    """Every number in a parsed value, with its key."""
    if type(value) is int or type(value) is float:
        yield field, value
        return
    inside = value.items() if type(value) is dict else ((field, each) for each in value) if type(value) is list else ()
    for key, inner in inside:
        if type(inner) is not str:  # nearly everything in a row is text, and need not be entered
            yield from _numbers(inner, key)


Kept = TypeVar("Kept")


def read_stored(path: Path, kind: type[Kept], *, name: str, remedy: str) -> Kept:
    """The content of a file with one JSON value; errors say that it should have been `name`."""
    try:
        return msgspec.convert(read_json(path), kind)
    except msgspec.ValidationError as error:
        raise DataError(f"not {name}: {error}", file=path, remedy=remedy) from None


def read_stored_rows(path: Path, kind: type[Kept], *, name: str, remedy: str, may_lack: bool = True) -> Iterator[Kept]:
    """The rows of a JSON Lines file; where it `may_lack`, a missing file has none."""
    for line in () if may_lack and not path.exists() else read_jsonl(path):
        try:
            yield msgspec.convert(line.value, kind)
        except msgspec.ValidationError as error:
            raise DataError(f"not {name}: {error}", file=path, row=line.number, remedy=remedy) from None


def read_toml(path: Path, *, remedy: str = "see docs/commands.md for an example") -> dict[str, Any]:
    """The file's fields, or DataError."""
    with open_for_reading(path) as stream:
        try:
            return tomllib.load(stream)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"not TOML: {error}", file=path, remedy=remedy) from None
