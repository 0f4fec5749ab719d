import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.cases.files.rows import row_from_case
from medthink.core.errors import DataError, UsageError
from medthink.core.jsonio import write_jsonl

Rows = dict[str, list[dict[str, Any]]]


def test_it_streams_the_splits_in_order_as_often_as_asked(tiny_folder: Path, tiny_rows: Rows) -> None:
    benchmark = Benchmark.open(str(tiny_folder))
    assert benchmark.splits == ("train", "test")
    expected = [row for rows in tiny_rows.values() for row in rows]
    assert [row_from_case(case) for case in benchmark] == expected
    assert list(benchmark) == list(benchmark)
    assert len(benchmark) == 5
    assert [case.split for case in benchmark] == ["train"] * 3 + ["test"] * 2


def test_splits_stand_in_a_fixed_order(tmp_path: Path, row_maker: Any) -> None:
    for name in ("test", "extra", "validation", "train", "another"):
        write_jsonl(tmp_path / f"{name}.jsonl", [row_maker(1)])
    assert Benchmark.open(tmp_path).splits == ("train", "validation", "test", "another", "extra")


def test_of_two_forms_of_a_split_the_jsonl_is_read_and_said(tiny_folder: Path) -> None:
    (tiny_folder / "train.parquet").write_bytes(b"not even parquet")
    (tiny_folder / ".hidden.jsonl").write_bytes(b"")
    benchmark = Benchmark.open(tiny_folder)
    assert len(list(benchmark)) == 5
    assert benchmark.sources == "train.jsonl, test.jsonl; images: images/"


def test_a_single_file_is_a_benchmark_with_its_images_beside_it(tiny_folder: Path) -> None:
    benchmark = Benchmark.open(tiny_folder / "test.jsonl")
    assert benchmark.splits == ("test",)
    assert all(image.read() for case in benchmark for image in case.question.images)


def test_one_split_is_a_benchmark(tiny_folder: Path) -> None:
    benchmark = Benchmark.open(tiny_folder)
    assert [case.id for case in benchmark["test"]] == [300, 301]
    assert benchmark.split("train").splits == ("train",)
    with pytest.raises(UsageError, match=r"no split 'dev'\n.*train, test"):
        benchmark["dev"]


def test_a_case_is_found_by_its_number(tiny_folder: Path) -> None:
    benchmark = Benchmark.open(tiny_folder)
    for case in benchmark:
        assert benchmark.case(case.id) == case
    with pytest.raises(
        DataError, match=r"no case 5\n.*there are: train 7, 12, 19254 \(3 cases\); test 300, 301 \(2 cases\)$"
    ):
        benchmark.case(5)
    with pytest.raises(DataError, match=r"no case 7\n.*there are: test 300, 301 \(2 cases\)$"):
        benchmark["test"].case(7)
    with pytest.raises(DataError, match="no case 7"):
        benchmark.filter(longitudinal=True).case(7)


def test_of_many_cases_the_range_and_the_nearest_are_named(tmp_path: Path, row_maker: Any) -> None:
    write_jsonl(tmp_path / "train.jsonl", [row_maker(number) for number in range(10, 60, 5)])
    write_jsonl(tmp_path / "test.jsonl", [row_maker(7)])
    with pytest.raises(DataError) as caught:
        Benchmark.open(tmp_path).case(31)
    assert caught.value.remedy == "there are: train 10 to 55 (10 cases); test 7 (1 case); nearest: 25, 30, 35"


def test_a_case_that_is_not_found_may_be_a_row_that_cannot_be_read(tiny_folder: Path) -> None:
    with (tiny_folder / "test.jsonl").open("ab") as stream:
        stream.write(b'{"title": "Case number 5"}\n{"title": \n')
    benchmark = Benchmark.open(tiny_folder)
    assert benchmark.case(300).id == 300
    with pytest.raises(DataError, match=r"no case 5 .*; 2 cannot\n.*data check"):
        benchmark.case(5)


def test_a_case_is_not_mistaken_when_the_file_changes(tiny_folder: Path, row_maker: Any) -> None:
    benchmark = Benchmark.open(tiny_folder)
    assert benchmark.case(300).id == 300
    write_jsonl(tiny_folder / "test.jsonl", [row_maker(302)])
    with pytest.raises(DataError, match="changed"):
        benchmark.case(300)
    write_jsonl(tiny_folder / "test.jsonl", [{"title": "Case number 300"}])
    with pytest.raises(DataError, match=r"test.jsonl:1: \w+: these columns are missing"):
        benchmark.case(300)


def test_filters_add_up(tiny_folder: Path) -> None:
    benchmark = Benchmark.open(tiny_folder)
    assert [case.id for case in benchmark.filter(longitudinal=True)] == [19254, 12, 300]
    assert [case.id for case in benchmark.filter(modality="MRI", longitudinal=False)] == [301]
    few = benchmark.filter(lambda case: case.image_count < 4).filter(longitudinal=True)
    assert [case.id for case in few] == [12, 300]
    assert (len(few), len(few["test"])) == (2, 1)


def test_the_first_defective_row_raises_when_iterated(tiny_folder: Path, row_maker: Any) -> None:
    write_jsonl(tiny_folder / "test.jsonl", [row_maker(1), row_maker(2, timepoint_count=1.5)])
    with pytest.raises(DataError, match=r"test\.jsonl:2: timepoint_count: expected a whole number, found 1\.5"):
        list(Benchmark.open(tiny_folder))


@pytest.mark.parametrize("name", ["missing", "missing.jsonl", "notes.txt", "empty"])
def test_what_is_no_benchmark_is_said_on_opening(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError):
        Benchmark.open(tmp_path / name)


def test_a_split_whose_name_is_no_unicode_is_refused(tiny_folder: Path) -> None:
    path = (tiny_folder / "test.jsonl").rename(tiny_folder / os.fsdecode(b"\xff.jsonl"))
    for opened in (path, tiny_folder):
        with pytest.raises(DataError, match="not valid Unicode"):
            Benchmark.open(opened)


def test_a_folder_named_like_a_split_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").mkdir()
    with pytest.raises(DataError, match="not a file"):
        list(Benchmark.open(tmp_path))


def test_cases_travel_between_processes(tiny_folder: Path) -> None:
    case = Benchmark.open(tiny_folder).case(300)
    twin = pickle.loads(pickle.dumps(case))
    assert row_from_case(twin) == row_from_case(case)
    assert twin.question.images[0].digest() == case.question.images[0].digest()


class TestFingerprint:
    def test_it_is_the_same_from_folder_and_zip(
        self, tmp_path: Path, tiny_rows: Rows, folder_maker: Callable[..., Path]
    ) -> None:
        folder = Benchmark.open(folder_maker(tmp_path / "a", tiny_rows))
        zipped = Benchmark.open(folder_maker(tmp_path / "b", tiny_rows, zipped=True))
        assert zipped.sources.endswith("images.zip")
        assert folder.fingerprint() == zipped.fingerprint()
        assert len(folder.fingerprint()) == 64

    def test_it_does_not_depend_on_the_order_of_rows_or_keys(
        self, tmp_path: Path, tiny_rows: Rows, folder_maker: Callable[..., Path]
    ) -> None:
        turned = {split: [dict(reversed(row.items())) for row in reversed(rows)] for split, rows in tiny_rows.items()}
        one = Benchmark.open(folder_maker(tmp_path / "a", tiny_rows))
        other = Benchmark.open(folder_maker(tmp_path / "b", turned))
        assert one.fingerprint() == other.fingerprint()

    @pytest.mark.parametrize(
        "change",
        [
            {"discussion": "other"},
            {"image_02_caption": "other"},
            {"is_longitudinal": False},
            {"source": "other"},
            {"options": {"A": "x"}},
        ],
    )
    def test_any_changed_field_changes_it(self, tiny_folder: Path, tiny_rows: Rows, change: dict[str, Any]) -> None:
        before = Benchmark.open(tiny_folder).fingerprint()
        write_jsonl(tiny_folder / "test.jsonl", [tiny_rows["test"][0] | change, tiny_rows["test"][1]])
        assert Benchmark.open(tiny_folder).fingerprint() != before

    def test_a_changed_or_missing_image_changes_it_at_once(self, tiny_folder: Path) -> None:
        benchmark = Benchmark.open(tiny_folder)
        seen = {benchmark.fingerprint()}
        image = tiny_folder / "images/case00300/300_1.jpg"
        image.write_bytes(b"other")
        seen.add(benchmark.fingerprint())
        image.unlink()
        seen.add(benchmark.fingerprint())
        assert len(seen) == 3

    def test_moving_a_case_between_splits_changes_it(self, tmp_path: Path, row_maker: Any) -> None:
        prints = set()
        for train, test in (((1, 2), (3,)), ((1,), (2, 3))):
            root = tmp_path / str(train)
            write_jsonl(root / "train.jsonl", map(row_maker, train))
            write_jsonl(root / "test.jsonl", map(row_maker, test))
            prints.add(Benchmark.open(root).fingerprint())
        assert len(prints) == 2


def test_an_images_folder_goes_before_a_zip_unless_it_is_empty(tmp_path: Path, row_maker: Any) -> None:
    write_jsonl(tmp_path / "test.jsonl", [row_maker(1)])
    assert Benchmark.open(tmp_path).sources == "test.jsonl; images: no images"
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("images/x.jpg", b"")
    (tmp_path / "images").mkdir()
    (tmp_path / "images/.DS_Store").touch()
    assert Benchmark.open(tmp_path).sources == "test.jsonl; images: images.zip"
    (tmp_path / "images/x.jpg").write_bytes(b"")
    assert Benchmark.open(tmp_path).sources == "test.jsonl; images: images/"


def test_an_images_folder_that_cannot_be_listed_is_said(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    iterdir = Path.iterdir

    def refuse(path: Path) -> Any:
        if path.name == "images":
            raise PermissionError(13, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match="images: cannot be read: Permission denied"):
        Benchmark.open(tiny_folder)


def test_tables_and_data_frames_hold_the_released_columns(tiny_folder: Path) -> None:
    benchmark = Benchmark.open(tiny_folder)
    table = benchmark.to_arrow()
    assert table.num_rows == 5
    assert table.column("split").to_pylist() == ["train"] * 3 + ["test"] * 2
    assert table.column("options").to_pylist()[3]["B"] == "Diagnosis B of 300"
    assert table.column("image_49_path").to_pylist().count(None) == 4
    frame = benchmark["test"].to_pandas()
    assert list(frame["title"]) == ["Case number 300", "Case number 301"]
    assert list(frame["timepoint_count"]) == [2, 1]


def test_a_column_named_split_is_not_replaced(tmp_path: Path, row_maker: Any) -> None:
    write_jsonl(tmp_path / "test.jsonl", [row_maker(1, split="mine")])
    table = Benchmark.open(tmp_path).to_arrow()
    assert (table.column_names.count("split"), table["split"].to_pylist()) == (1, ["mine"])


def test_a_data_frame_without_pandas_is_said_plainly(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Table:
        def to_pandas(self) -> None:
            raise ModuleNotFoundError("No module named 'pandas'")

    monkeypatch.setattr(Benchmark, "to_arrow", lambda _: Table())
    with pytest.raises(UsageError, match="pip install pandas"):
        Benchmark.open(tiny_folder).to_pandas()
