"""Every reader, given anything: a case, a DataError, and nothing else."""

import contextlib
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.files.export import export_benchmark
from medthink.cases.files.rows import COLUMNS, SLOT_COLUMNS, RowLocation, case_from_row, row_from_case
from medthink.cases.images.stores import FolderImages, NoImages, ZipImages, path_problem
from medthink.core.errors import DataError
from medthink.core.jsonio import encode_json, parse_json, write_jsonl

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row of valid types, with whatever values."""
    row: dict[str, Any] = {column: draw(texts) for column in COLUMNS}
    row |= {"title": f"Case number {draw(st.integers(0, 10**9 - 1))}", "is_longitudinal": draw(st.booleans())}
    row |= {name: draw(st.integers(-(2**63), 2**63 - 1)) for name in ("timepoint_count", "image_count")}
    keys = st.sampled_from("ABCDEFZ") if draw(st.booleans()) else texts
    row["options"] = draw(st.dictionaries(keys, texts, max_size=6))
    row |= draw(st.dictionaries(st.sampled_from(SLOT_COLUMNS), texts, max_size=8))
    extra = draw(
        st.dictionaries(texts.filter(lambda name: name not in row and name not in SLOT_COLUMNS), values, max_size=3)
    )
    return row | extra


def outcomes(path: Path) -> list[Case | DataError]:
    """Everything a reader makes of a file; a file that cannot be read at all is one error."""
    try:
        return list(Benchmark.open(path).rows_or_errors())
    except DataError as error:
        return [error]


@quick
@given(st.binary(max_size=200) | st.lists(values.map(encode_json) | st.binary(max_size=30)).map(b"\n".join))
def test_any_bytes_are_jsonl_or_a_data_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "test.jsonl").write_bytes(data)
    found = outcomes(tmp_path / "test.jsonl")
    assert all(isinstance(one, Case | DataError) for one in found)
    assert found


@quick
@given(st.dictionaries(st.sampled_from([*COLUMNS, *SLOT_COLUMNS[:10], "extra"]), values))
def test_any_object_is_a_case_or_a_data_error(row: dict[str, Any]) -> None:
    full = dict.fromkeys(COLUMNS, "") | {"title": "1", "options": {}, "is_longitudinal": True} | row
    try:
        case = case_from_row(full, split="x", store=NoImages(Path()), place=RowLocation("f", 1))
    except DataError as error:
        assert str(error).startswith("f:1: ")
    else:
        assert case_from_row(row_from_case(case), split="x", store=case_store(case), place=RowLocation("f", 1)) == case


def case_store(case: Case) -> Any:
    return case.question.images[0].store if case.question.images else NoImages(Path())


@pytest.fixture(scope="module")
def parquet() -> bytes:
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "text") | {"title": "Case number 1", "options": {"A": "a"}}
    row |= {"is_longitudinal": True, "timepoint_count": 1, "image_count": 1, "image_01_path": "images/a.jpg"}
    columns: dict[str, Any] = {name: [value] * 3 for name, value in row.items()}
    columns["image_01"] = [{"bytes": b"picture", "path": "a.jpg"}] * 3
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


@quick
@given(data=st.binary(max_size=200))
def test_any_bytes_are_parquet_or_a_data_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "test.parquet").write_bytes(data)
    assert all(isinstance(one, DataError) for one in outcomes(tmp_path / "test.parquet"))


@quick
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_parquet_with_flipped_bytes_is_read_or_refused(
    tmp_path: Path, parquet: bytes, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(parquet)
    for place, byte in changes:
        data[int(place * len(data))] = byte
    (tmp_path / "test.parquet").write_bytes(data)
    for found in outcomes(tmp_path / "test.parquet"):
        if isinstance(found, Case):
            read_or_refuse(found.question.images[0].store, "images/a.jpg") if found.question.images else None


def read_or_refuse(store: Any, path: str) -> bytes | None:
    try:
        return store.read(path) if store.has(path) else None
    except DataError:
        return None


@quick
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6))
def test_a_zip_with_flipped_bytes_is_read_or_refused(tmp_path: Path, changes: list[tuple[float, int]]) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images/a.jpg", b"picture" * 20)
    data = bytearray(stream.getvalue())
    for place, byte in changes:
        data[int(place * len(data))] = byte
    (tmp_path / "images.zip").write_bytes(data)
    try:
        found = read_or_refuse(ZipImages(tmp_path / "images.zip"), "images/a.jpg")
    except DataError:
        found = None
    assert found in (None, b"picture" * 20)


@quick
@given(st.binary(max_size=100))
def test_any_bytes_are_a_zip_or_a_data_error(tmp_path: Path, data: bytes) -> None:
    directory = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 20, 0, 0)
    for content in (data, data + directory):
        (tmp_path / "images.zip").write_bytes(content)
        with contextlib.suppress(DataError):
            assert ZipImages(tmp_path / "images.zip").listing() == {}


parts = st.sampled_from(["..", ".", "", "images", "secret", "a.jpg", "~", "C:", "link"]) | texts


@quick
@given(st.lists(parts, max_size=6).map("/".join) | st.text(max_size=300))
def test_no_path_reads_anything_outside_the_images(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    if not root.exists():
        (root / "images").mkdir(parents=True)
        (root / "images/a.jpg").write_bytes(b"inside")
        (root / "secret").write_bytes(b"outside")
        (tmp_path / "secret").write_bytes(b"outside")
        (root / "images/link").symlink_to(tmp_path)
    store = FolderImages(root)
    assert read_or_refuse(store, path) in (None, b"inside")
    if store.has(path):
        assert path_problem(path) == ""


@settings(quick, max_examples=25)
@given(made=st.lists(rows(), min_size=1, max_size=3))
def test_valid_rows_survive_jsonl_to_parquet_to_jsonl(tmp_path_factory: Any, made: list[dict[str, Any]]) -> None:
    root = tmp_path_factory.mktemp("trip")
    write_jsonl(root / "in/test.jsonl", made)
    original = Benchmark.open(root / "in")
    export_benchmark(original, root / "parquet", format="parquet")
    export_benchmark(Benchmark.open(root / "parquet"), root / "back", format="jsonl")
    expected = [row_from_case(case) for case in original]
    for name in ("parquet", "back"):
        copy = Benchmark.open(root / name)
        assert [row_from_case(case) for case in copy] == expected
        assert copy.fingerprint() == original.fingerprint()


@quick
@given(values)
def test_whatever_is_encoded_is_parsed_back(value: Any) -> None:
    assert parse_json(encode_json(value)) == value


@quick
@given(st.dictionaries(texts, scalars, min_size=1, max_size=4), st.sampled_from(["", " ", "\n", "\t "]), st.data())
def test_a_key_given_twice_never_passes(value: dict[str, Any], gap: str, data: st.DataObject) -> None:
    pairs = [(encode_json(key), encode_json(inner)) for key, inner in value.items()]
    pairs.append(data.draw(st.sampled_from(pairs)))
    text = b"{" + b",".join(key + gap.encode() + b":" + inner for key, inner in pairs) + b"}"
    with pytest.raises(DataError, match="twice"):
        parse_json(text)
