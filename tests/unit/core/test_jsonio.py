import gzip
import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from medthink.core import jsonio
from medthink.core.errors import DataError
from medthink.core.jsonio import (
    MAX_DEPTH,
    canonical_json,
    parse_json,
    read_json,
    read_jsonl,
    read_lines,
    write_json,
    write_jsonl,
)


def refusal(text: bytes) -> DataError:
    with pytest.raises(DataError) as caught:
        parse_json(text, file="f", row=3)
    return caught.value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"NaN", "NaN and Infinity are not JSON"),
        (b'{"a": -Infinity}', "NaN and Infinity are not JSON"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b'{"a": 1', "truncated"),
        (b"", "truncated"),
        (b"{'a': 1}", "correct the text at that column"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b"[" * 5000 + b"]" * 5000, "not JSON"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} deep"),
        (b'{"a":' * 1000 + b"1" + b"}" * 1000, f"nested more than {MAX_DEPTH} deep"),
    ],
)
def test_what_is_not_strict_json_is_refused(text: bytes, told: str) -> None:
    error = refusal(text)
    assert told in str(error)
    assert str(error).startswith("f:3: ")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b'{"a": 1, "a": 2}', "a"),
        (b'{"a":1,"a":2}', "a"),
        (b'{"a" : 1, "a":2}', "a"),
        (b'{"a"\n:1,"b"\t :2,"a"\r:3}', "a"),
        (b'{"a": {"b": [{"c": 1, "c": 1}]}}', "c"),
        (b'{"a": 1, "\\u0061": 2}', "a"),
        (b'{"x":"\\":\\":","a":1,"a":2}', "a"),
        (b'{"a\\":":1,"a\\":":2}', 'a":'),
    ],
)
def test_a_key_given_twice_is_refused_by_name(text: bytes, field: str) -> None:
    assert refusal(text).field == field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b'{"a":18446744073709551616}', "a"),
        (b'{"a": 1e300, "b": {"c": [0, -9223372036854775809]}}', "c"),
        (b'{"x": "1", "a": 1' + b"0" * 300 + b"}", "a"),
        (b"[18446744073709551616]\n", ""),
    ],
)
def test_a_whole_number_that_would_become_a_float_is_refused_by_name(text: bytes, field: str) -> None:
    error = refusal(text)
    assert (error.file, error.row, error.field) == ("f", 3, field)
    assert "64 bits" in error.problem
    assert "as a string" in error.remedy


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 1e300, -1e20, 2.0**64])
def test_the_largest_numbers_stay_what_they_are(number: float) -> None:
    for text in (f"[{number!r}]", f"[ {number!r} ]"):
        (parsed,) = parse_json(text.encode())
        assert (parsed, type(parsed)) == (number, type(number))


def test_a_doubled_key_around_a_nesting_bomb_is_refused() -> None:
    # Older Pythons cannot go deep enough to name the key.
    assert "is used twice" in str(refusal(b'{"a":' + b"[" * 1000 + b"]" * 1000 + b',"a":1}'))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": "x\\": y", "b": "\\":"}',
        b'{"a" : {"a": 1}, "b": [{"a": 1}, {"a": 2}]}',
        b'{"a": "he said \\" : \\" twice", "c": {}}',
        b'{"\\"": 1, "\\\\": 2, "a\\\\\\"": 3}',
        b"[]",
        b'"text"',
        b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
    ],
)
def test_awkward_but_valid_json_is_read(text: bytes) -> None:
    import json

    assert parse_json(text) == json.loads(text)


def test_lines_end_at_newlines_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = ["one\u2028two", "a\u2029b", "c\x85d", "e\x0bf\x0cg"]
    path.write_bytes(
        b"\n".join(b'"' + text.replace("\x0b", "\\u000b").replace("\x0c", "\\f").encode() + b'"' for text in texts)
    )
    lines = list(read_jsonl(path))
    assert [line.value for line in lines] == texts
    assert [line.number for line in lines] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "row", "told"),
    [
        (b"", None, "the file is empty"),
        (b"\xef\xbb\xbf{}\n", 1, "byte-order mark"),
        (b"{}\r\n{}\r\n", 1, "CRLF"),
        (b"{}\n\n{}\n", 2, "blank"),
        (b"{}\n   \n", 2, "blank"),
        (b'{}\n{"a": "cut', 2, "truncated"),
        ('{"a": "é"}'.encode("latin-1"), 1, "not UTF-8"),
    ],
)
def test_a_bad_file_names_its_line(tmp_path: Path, data: bytes, row: int | None, told: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    with pytest.raises(DataError, match=told) as caught:
        list(read_jsonl(path))
    assert caught.value.row == row
    assert caught.value.remedy


def test_a_folder_or_nothing_where_a_file_is_due(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a file"):
        list(read_jsonl(tmp_path))
    with pytest.raises(DataError, match="no such file"):
        read_json(tmp_path / "none.json")


class FailingDisk(io.BytesIO):
    """A file of which nothing beyond the first line can be read."""

    def readline(self, size: int | None = -1) -> bytes:
        return super().readline(size) if self.tell() == 0 else self.read()

    def read(self, _: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_disk_that_fails_half_way_does_not_pass_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonio, "open_for_reading", lambda _: FailingDisk(b"{}\n{}\n"))
    lines = read_jsonl(Path("a.jsonl"))
    assert next(lines).value == {}
    with pytest.raises(DataError, match=r"a.jsonl: cannot be read: Input/output error\n.*disk"):
        next(lines)
    with pytest.raises(DataError, match=r"a.json: cannot be read: Input/output error"):
        read_json(Path("a.json"))


def test_a_line_of_a_gigabyte_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as stream:
        stream.write(b'{"a": "')
        stream.truncate(1024**3)
    tracemalloc.start()
    with pytest.raises(DataError, match="longer than 16,777,216 bytes"):
        list(read_jsonl(path))
    assert tracemalloc.get_traced_memory()[1] < 75 * 1024**2
    tracemalloc.stop()


def test_the_line_limit_counts_the_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'"345678"\n')
    assert [line.value for line in read_jsonl(path, max_line_bytes=9)] == ["345678"]
    with pytest.raises(DataError, match="longer than 8 bytes"):
        list(read_jsonl(path, max_line_bytes=8))


def test_reading_can_start_at_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n{"b":2}\n3')
    lines = list(read_lines(path))
    assert [next(read_lines(path, offset=line.offset)).data for line in lines] == [line.data for line in lines]


def test_canonical_json_depends_on_the_value_only() -> None:
    one: dict[str, Any] = {"b": [1, {"d": 1, "c": "é"}], "a": None}
    other: dict[str, Any] = {"a": None, "b": [1, {"c": "é", "d": 1}]}
    assert canonical_json(one) == canonical_json(other) == '{"a":null,"b":[1,{"c":"é","d":1}]}'.encode()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    values: list[Any] = [{"a": "\u2028\n\0"}, [1, 2.5, None, True], "x", {"": {}}]
    write_jsonl(tmp_path / "a.jsonl", values)
    assert [line.value for line in read_jsonl(tmp_path / "a.jsonl")] == values
    write_json(tmp_path / "a.json", values)
    assert read_json(tmp_path / "a.json") == values


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ('{"a": 1}\n'.encode("utf-16"), "UTF-16"),
        (gzip.compress(b"{}\n", mtime=0), "gzip"),
        (b'[{"a": 1},\n{"a": 2}]\n', "single JSON value"),
        (b'{\n  "a": 1\n}\n', "single JSON value"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS"),
        (b"<!DOCTYPE html>\n<html></html>\n", "web page"),
        (b"PAR1....", "parquet"),
    ],
)
def test_a_file_of_another_kind_is_named_as_what_it_is(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "test.jsonl"
    path.write_bytes(data)
    with pytest.raises(DataError, match=kind):
        list(read_jsonl(path))
