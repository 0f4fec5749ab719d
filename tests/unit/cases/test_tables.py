import io
import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.files import tables
from medthink.cases.files.export import export_benchmark, table_from_cases
from medthink.cases.files.rows import row_from_case
from medthink.cases.files.tables import JsonlTable, ParquetTable
from medthink.core.errors import DataError
from medthink.core.jsonio import encode_json
from small_benchmark import write_benchmark

Rows = dict[str, list[dict[str, Any]]]
MakeRow = Callable[..., dict[str, Any]]


def rows_of(benchmark: Benchmark) -> list[dict[str, Any]]:
    return [row_from_case(case) for case in benchmark]


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def columns_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def refusal(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        list(Benchmark.open(path))
    return caught.value


@pytest.mark.parametrize("group", [1, 2, 1000])
def test_jsonl_and_parquet_give_the_same_rows_in_the_same_order(tiny_folder: Path, group: int) -> None:
    expected = Benchmark.open(tiny_folder)
    for split in expected.splits:
        table = table_from_cases(expected[split]).drop_columns(["split"])
        pq.write_table(table, tiny_folder / f"{split}.parquet", row_group_size=group)
    for split in expected.splits:
        found = Benchmark.open(tiny_folder / f"{split}.parquet")
        assert rows_of(found) == rows_of(expected[split])
        assert [type(row["is_longitudinal"]) for row in rows_of(found)] == [bool] * len(found)


@pytest.mark.parametrize("spell", ["object", "text", "list", "pairs", "text of list", "struct", "map"])
def test_options_are_read_from_every_spelling(tmp_path: Path, row_maker: MakeRow, spell: str) -> None:
    options = {"A": "a", "B": "b", "C": "c"}
    row = row_maker(1)
    if spell in ("struct", "map"):
        columns = columns_of([row])
        kind = pa.struct([("C", pa.string()), ("A", pa.string()), ("B", pa.string()), ("D", pa.string())])
        columns["options"] = pa.array([options], kind if spell == "struct" else pa.map_(pa.string(), pa.string()))
        path = write_parquet(tmp_path / "test.parquet", columns)
    else:
        row["options"] = {
            "object": {"C": "c", "B": "b", "A": "a", "D": None},
            "text": encode_json(options).decode(),
            "list": list(options.values()),
            "pairs": [list(pair) for pair in options.items()],
            "text of list": encode_json(list(options.values())).decode(),
        }[spell]
        path = tmp_path / "test.jsonl"
        path.write_bytes(encode_json(row))
    (case,) = Benchmark.open(path)
    assert list(case.question.options.items()) == list(options.items())


@pytest.mark.parametrize("options", [None, 5, "not JSON", '"text"', ["a"] * 27, [["A", "a"], ["A", "b"]], {"A": 1}])
def test_options_of_another_shape_are_refused(tmp_path: Path, row_maker: MakeRow, options: object) -> None:
    path = tmp_path / "test.jsonl"
    path.write_bytes(encode_json(row_maker(1, options=options)))
    error = refusal(path)
    assert (error.row, error.field) == (1, "options")


def test_empty_slots_may_be_null_empty_or_absent(tmp_path: Path, row_maker: MakeRow) -> None:
    row = row_maker(1, images=2)
    empty = {f"image_{slot:02d}_{part}": "" for slot in range(3, 50) for part in ("id", "path", "caption")}
    null = {f"image_{slot:02d}_{part}": None for slot in range(3, 50) for part in ("modality", "sub_modality")}
    path = write_parquet(tmp_path / "test.parquet", columns_of([row | empty | null]))
    (case,) = Benchmark.open(path)
    assert row_from_case(case) == row


def test_extra_columns_are_kept(tmp_path: Path, row_maker: MakeRow) -> None:
    extra = {"score": 0.5, "rank": 3, "tags": ["a", "b"], "nested": {"x": 1}, "image_50_id": "z", "image_01": "name"}
    path = write_parquet(tmp_path / "test.parquet", columns_of([row_maker(1, **extra), row_maker(2)]))
    first, second = Benchmark.open(path)
    assert first.extra == extra
    assert second.extra == {}


def test_not_a_number_means_no_value(tmp_path: Path, row_maker: MakeRow) -> None:
    columns = columns_of([row_maker(1), row_maker(2)])
    (first, second) = Benchmark.open(write_parquet(tmp_path / "a.parquet", columns | {"x": [float("nan"), 1.0]}))
    assert (first.extra, second.extra) == ({}, {"x": 1.0})
    slots = columns_of([row_maker(1)]) | {"image_49_id": [float("nan")]}
    (case,) = Benchmark.open(write_parquet(tmp_path / "c.parquet", slots))
    assert [image.slot for image in case.question.images] == [1, 2]


@pytest.mark.parametrize("value", [float("inf"), [float("-inf")], {"a": float("inf")}])
def test_an_infinite_number_is_refused_by_its_column(tmp_path: Path, row_maker: MakeRow, value: Any) -> None:
    error = refusal(write_parquet(tmp_path / "b.parquet", columns_of([row_maker(1)]) | {"x": [value]}))
    assert (error.file, error.field) == (str(tmp_path / "b.parquet"), "x")
    assert "infinite" in error.problem and "null" in error.remedy


def test_parquet_without_rows_is_as_empty_as_any_empty_file(tmp_path: Path, row_maker: MakeRow) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(pa.table(columns_of([row_maker(1)])).slice(0, 0), path)
    assert "no row" in refusal(path).problem


def test_parquet_with_missing_columns_is_one_error(tmp_path: Path, row_maker: MakeRow) -> None:
    columns = columns_of([row_maker(1), row_maker(2)])
    del columns["title"], columns["options"]
    error = refusal(write_parquet(tmp_path / "test.parquet", columns))
    assert error.problem == "these columns are missing: title, options"


def test_parquet_with_a_column_json_cannot_say_is_refused(tmp_path: Path, row_maker: MakeRow) -> None:
    columns = columns_of([row_maker(1)]) | {"blob": [b"\0"]}
    error = refusal(write_parquet(tmp_path / "test.parquet", columns))
    assert (error.field, "binary" in error.problem) == ("blob", True)


def test_parquet_with_a_column_twice_is_refused(tmp_path: Path, row_maker: MakeRow) -> None:
    table = pa.table(columns_of([row_maker(1)]))
    pq.write_table(table.append_column("title", table.column("title")), tmp_path / "test.parquet")
    assert "columns occur twice: title" in str(refusal(tmp_path / "test.parquet"))


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path: Path, row_maker: MakeRow) -> None:
    columns = columns_of([row_maker(1)])
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    assert "cannot be read" in str(refusal(write_parquet(tmp_path / "t.parquet", columns | {"discussion": broken})))


def test_a_damaged_parquet_page_is_noticed(tmp_path: Path, tiny_folder: Path) -> None:
    table = table_from_cases(Benchmark.open(tiny_folder))
    path = tmp_path / "test.parquet"
    pq.write_table(table, path, write_page_checksum=True, compression="none")
    data = path.read_bytes()
    at = data.index(b"A lesion of 3")
    path.write_bytes(data[:at] + b"B" + data[at + 1 :])
    assert "cannot be read as parquet" in str(refusal(path))


@pytest.mark.parametrize("cut", [0, 3, 4, 100, -1, -5, -300])
def test_a_cut_parquet_is_one_error(tiny_folder: Path, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(table_from_cases(Benchmark.open(tiny_folder)), path)
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    assert "cannot be read as parquet" in str(refusal(path))


def test_embedded_images_are_not_read_for_the_text(
    tmp_path: Path, row_maker: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = columns_of([row_maker(1)])
    columns["image_01"] = pa.array([{"bytes": b"x", "path": "p"}])
    columns["image_02"] = pa.array([b"y"])
    path = write_parquet(tmp_path / "test.parquet", columns)
    asked: list[list[str]] = []
    real = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, columns: list[str], **options: Any) -> Any:
        asked.append(columns)
        return real(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    list(Benchmark.open(path))
    assert asked
    assert not {"image_01", "image_02"} & set(asked[0])


def test_one_bad_row_does_not_hide_the_others(tmp_path: Path, row_maker: MakeRow) -> None:
    rows = [encode_json(row_maker(number)) for number in (1, 2, 3)]
    lines = [rows[0], b"{cut", rows[1], b"", b"[1]", encode_json(row_maker(9, image_count="two")), b"\xff", rows[2]]
    (tmp_path / "test.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    found = list(Benchmark.open(tmp_path / "test.jsonl").rows_or_errors())
    assert [one.id if isinstance(one, Case) else one.row for one in found] == [1, 2, 2, 4, 5, 6, 7, 3]
    assert isinstance(found[5], DataError)
    assert found[5].field == "image_count"


def test_a_bad_row_of_a_parquet_does_not_hide_the_others(tmp_path: Path, row_maker: MakeRow) -> None:
    rows = [row_maker(1), row_maker(2, title="no number"), row_maker(3)]
    columns = columns_of(rows)
    columns["note"] = ['{"a": 1}', None, "{cut"]
    table = pa.table(columns)
    marked = table.schema.field("note").with_metadata(tables.JSON_MARK)
    table = table.cast(table.schema.set(table.schema.get_field_index("note"), marked))
    pq.write_table(table, tmp_path / "test.parquet")
    first, second, third = Benchmark.open(tmp_path / "test.parquet").rows_or_errors()
    assert isinstance(first, Case)
    assert first.extra == {"note": {"a": 1}}
    assert isinstance(second, DataError)
    assert (second.row, second.field) == (2, "title")
    assert isinstance(third, DataError)
    assert third.row == 3


@pytest.mark.parametrize("missing", ["title", "correct_answer", "options", "image_count", "interval_text"])
def test_a_missing_column_is_not_an_empty_one(tmp_path: Path, row_maker: MakeRow, missing: str) -> None:
    row = row_maker(1)
    del row[missing]
    (tmp_path / "test.jsonl").write_bytes(encode_json(row))
    error = refusal(tmp_path / "test.jsonl")
    assert (error.field, error.problem) == (missing, "the column is missing")


def test_rows_are_counted_without_being_parsed(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    for text, count in ((b"{x\n{\n", 2), (b"{x\n{", 2), (b"\n", 1)):
        path.write_bytes(text)
        assert JsonlTable(path, "test").count() == count
    path.write_bytes(b"")
    with pytest.raises(DataError, match="the file is empty"):
        JsonlTable(path, "test").count()


def test_any_row_can_be_read_again_by_its_position(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    parquet = tiny_folder / "all.parquet"
    pq.write_table(table_from_cases(Benchmark.open(tiny_folder)), parquet, row_group_size=3)
    for table in (JsonlTable(tiny_folder / "train.jsonl", "train"), ParquetTable(parquet, "all")):
        rows = [row for row in table.rows() if not isinstance(row, DataError)]
        assert [table.row_at(row.position, row.number) for row in rows] == rows
        assert [row.number for row in rows] == list(range(1, table.count() + 1))


def test_parquet_is_read_a_few_hundred_rows_at_a_time(
    tmp_path: Path, row_maker: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    convert = tables._rows_of_batch
    monkeypatch.setattr(tables, "_rows_of_batch", lambda batch, path: sizes.append(len(batch)) or convert(batch, path))
    path = write_parquet(tmp_path / "test.parquet", columns_of([row_maker(number) for number in range(700)]))
    cases = iter(Benchmark.open(path))
    assert (next(cases).id, sizes) == (0, [256])
    assert [case.id for case in cases] == [*range(1, 700)]
    assert sizes == [256, 256, 188]


def test_json_lines_are_read_a_few_at_a_time(tmp_path: Path, row_maker: MakeRow) -> None:
    line = encode_json(row_maker(1, discussion="x" * 100_000)) + b"\n"
    (tmp_path / "test.jsonl").write_bytes(line * 200)
    tracemalloc.start()
    assert sum(1 for _ in Benchmark.open(tmp_path / "test.jsonl")) == 200
    assert tracemalloc.get_traced_memory()[1] < 40 * len(line)
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["train.jsonl", "train.parquet"])
def test_a_file_without_permission_is_one_error(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(b"{}")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Not chmod, which does not stop root.
    monkeypatch.setattr(Path, "open", refuse)
    assert "Permission denied" in str(refusal(tmp_path / name))


def test_one_embedded_path_in_two_splits_is_refused_at_opening(tmp_path: Path) -> None:
    for split, shade in (("train", 10), ("test", 200)):
        root = write_benchmark(tmp_path / split, cases=1, images=1)
        row = json.loads((root / "test.jsonl").read_text())
        (root / "train.jsonl").unlink()
        (root / "test.jsonl").write_text(json.dumps(row) + "\n")
        stream = io.BytesIO()
        Image.new("L", (8, 8), shade).save(stream, "PNG")
        (root / row["image_01_path"]).write_bytes(stream.getvalue())
        export_benchmark(Benchmark.open(root), tmp_path / f"{split}-out", format="parquet", embed_images=True)
        (tmp_path / "both").mkdir(exist_ok=True)
        shutil.copy(tmp_path / f"{split}-out/test.parquet", tmp_path / f"both/{split}.parquet")
    with pytest.raises(DataError, match=r"images/case00100/i100x1\.jpg.*is in .*\.parquet, too"):
        Benchmark.open(tmp_path / "both")
    (tmp_path / "both/train.parquet").unlink()
    assert Benchmark.open(tmp_path / "both").case(100).question.images[0].read()
