"""Strict JSON and JSON Lines.

Everything read here is checked harder than the standard library does: NaN, Infinity, duplicate keys, lone
surrogates, deep nesting and byte-order marks are refused, and every error names file, line and field. Lines are
split on "\\n" alone, because U+2028 inside a string is data. Files are streamed, never loaded.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading, write_atomic

MAX_LINE_BYTES = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
# Every string of a valid JSON text, left to right; the group tells keys (":" follows) from values.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*+(:?)', re.DOTALL)


class Line(NamedTuple):
    """One line of a JSON Lines file, with its number for error messages."""

    number: int
    value: Any


def parse_json(data: bytes, *, file: object = "", row: int | None = None) -> Any:
    """Parse one JSON text, or raise DataError."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        problem, remedy = _explain(data, error)
        raise DataError(problem, file=file, row=row, remedy=remedy) from None
    if _count_keys_written(data) != _count_keys_kept(value):
        field = _find_duplicate_key(data)
        raise DataError(
            "the same key stands twice in one object", file=file, row=row, field=field, remedy="keep one of them"
        )
    return value


def read_json(path: Path) -> Any:
    """Read a file that holds one JSON text."""
    with open_for_reading(path) as stream:
        return parse_json(stream.read(), file=path)


def read_jsonl(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Stream the lines of a JSON Lines file."""
    with open_for_reading(path) as stream:
        number = 0
        while raw := stream.readline(max_line_bytes + 1):
            number += 1
            _refuse_bad_line(raw, file=path, row=number, max_line_bytes=max_line_bytes)
            yield Line(number, parse_json(raw, file=path, row=number))
        if number == 0:
            raise DataError("the file is empty", file=path, remedy="expected one JSON object per line")


def encode_json(value: Any) -> bytes:
    """Encode compactly, keys in the order given."""
    return orjson.dumps(value)


def canonical_json(value: Any) -> bytes:
    """Encode so that equal values give equal bytes: sorted keys, no spaces, UTF-8."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def write_json(path: Path, value: Any) -> None:
    """Write one readable JSON text atomically."""
    write_atomic(path, [orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)])


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Write one JSON text per line, atomically, without holding them all."""
    write_atomic(path, (orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE) for value in values))


def _refuse_bad_line(raw: bytes, *, file: Path, row: int, max_line_bytes: int) -> None:
    if len(raw) > max_line_bytes:
        raise DataError(
            f"the line is longer than {max_line_bytes:,} bytes",
            file=file, row=row, remedy="is this JSON Lines, one object per line?",
        )  # fmt: skip
    if row == 1 and raw.startswith(_BOM):
        raise DataError("the file starts with a byte-order mark", file=file, row=1, remedy="save it as plain UTF-8")
    if raw.endswith(b"\r\n"):
        raise DataError("the line ends in CRLF", file=file, row=row, remedy="convert the line endings to LF")
    if not raw.strip():
        raise DataError("the line is blank", file=file, row=row, remedy="remove it")


def _explain(data: bytes, error: orjson.JSONDecodeError) -> tuple[str, str]:
    """Say in plain words why a text is not JSON."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as bad:
        return f"not UTF-8 at byte {bad.start}", "save the file as UTF-8"
    if re.search(rb"(?<![\w\"])-?(NaN|Infinity)\b", data):
        return f"not JSON: {error}", "NaN and Infinity are not JSON; write null"
    if not data.rstrip().endswith((b"}", b"]")):
        return f"not JSON: {error}", "the text looks cut off; copy or download the file again"
    return f"not JSON: {error}", "mend the text at that column"


def _count_keys_written(data: bytes) -> int:
    return _STRINGS.findall(data).count(b":")


def _count_keys_kept(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count_keys_kept(item) for item in value.values() if isinstance(item, dict | list))
    if isinstance(value, list):
        return sum(_count_keys_kept(item) for item in value if isinstance(item, dict | list))
    return 0


def _find_duplicate_key(data: bytes) -> str:
    twice: list[str] = []

    def see(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                twice.append(key)
            seen.add(key)

    json.loads(data, object_pairs_hook=see)
    return twice[0] if twice else ""
