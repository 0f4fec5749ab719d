import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medthink.cases.benchmark import Benchmark
from medthink.cases.files import export
from medthink.cases.files.export import Exported, export_benchmark
from medthink.cases.files.rows import COLUMNS, SLOT_COLUMNS, row_from_case
from medthink.cases.images import embedded
from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.core.jsonio import read_jsonl, write_jsonl

FORMS = [("jsonl", False), ("parquet", False), ("parquet", True)]
Rows = dict[str, list[dict[str, Any]]]


def rows_of(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(case.split, row_from_case(case)) for case in Benchmark.open(path)]


@pytest.mark.parametrize(("form", "embed"), FORMS)
@pytest.mark.parametrize(("back", "embed_back"), FORMS)
def test_there_and_back_loses_nothing(
    tiny_folder: Path, tmp_path: Path, form: Any, embed: bool, back: Any, embed_back: bool
) -> None:
    original = Benchmark.open(tiny_folder)
    done = export_benchmark(original, tmp_path / "there", format=form, embed_images=embed)
    assert done == Exported(cases=5, images=59, absent={}, damaged={})
    there = Benchmark.open(tmp_path / "there")
    export_benchmark(there, tmp_path / "back", format=back, embed_images=embed_back)
    for path in (tmp_path / "there", tmp_path / "back"):
        assert rows_of(path) == rows_of(tiny_folder)
        assert Benchmark.open(path).fingerprint() == original.fingerprint()


def test_a_column_named_like_an_image_is_kept(
    tmp_path: Path, row_maker: Any, folder_maker: Callable[..., Path]
) -> None:
    source = folder_maker(tmp_path / "in", {"test": [row_maker(1, image_01="a link", image_02={"src": "a link"})]})
    export_benchmark(Benchmark.open(source), tmp_path / "out", format="parquet")
    assert rows_of(tmp_path / "out") == rows_of(source)


@pytest.mark.parametrize(("form", "embed"), FORMS)
def test_a_split_of_which_a_filter_leaves_nothing_is_left_out(
    tiny_folder: Path, tmp_path: Path, form: Any, embed: bool
) -> None:
    part = Benchmark.open(tiny_folder).filter(lambda case: case.split == "test")
    export_benchmark(part, tmp_path / "out", format=form, embed_images=embed)
    assert rows_of(tmp_path / "out") == [("test", row) for split, row in rows_of(tiny_folder) if split == "test"]


def test_a_second_jsonl_export_gives_the_same_bytes(tiny_folder: Path, tmp_path: Path) -> None:
    export_benchmark(Benchmark.open(tiny_folder), tmp_path / "a", format="jsonl")
    export_benchmark(Benchmark.open(tmp_path / "a"), tmp_path / "b", format="parquet")
    export_benchmark(Benchmark.open(tmp_path / "b"), tmp_path / "c", format="jsonl")
    for split in ("train", "test"):
        assert (tmp_path / f"a/{split}.jsonl").read_bytes() == (tmp_path / f"c/{split}.jsonl").read_bytes()


def test_every_line_names_every_column(tiny_folder: Path, tmp_path: Path) -> None:
    export_benchmark(Benchmark.open(tiny_folder), tmp_path / "out", format="jsonl")
    rows = [line.value for line in read_jsonl(tmp_path / "out/train.jsonl")]
    assert all(row.keys() == {*COLUMNS, *SLOT_COLUMNS, "source", "note", "weight", "tags"} for row in rows)
    assert (rows[0]["image_02_path"], rows[0]["tags"]) == ("", None)


def test_parquet_is_compressed_and_a_flipped_bit_is_noticed(tiny_folder: Path, tmp_path: Path) -> None:
    export_benchmark(Benchmark.open(tiny_folder), tmp_path / "out", format="parquet")
    path = tmp_path / "out/train.parquet"
    assert pq.read_metadata(path).row_group(0).column(0).compression == "ZSTD"
    assert pq.read_table(path).column("tags").to_pylist() == [None, None, '["one","two"]']
    data = path.read_bytes()
    at = data.index(b"Case number 7") + len(b"Case number ")
    path.write_bytes(data[:at] + b"6" + data[at + 1 :])
    with pytest.raises(DataError, match="cannot be read as parquet"):
        list(Benchmark.open(path))


def test_parquet_without_images_claims_none(tiny_folder: Path, tmp_path: Path) -> None:
    export_benchmark(Benchmark.open(tiny_folder), tmp_path / "out", format="parquet")
    shutil.rmtree(tmp_path / "out/images")
    assert Benchmark.open(tmp_path / "out").sources == "train.parquet, test.parquet; images: no images"


def test_a_zip_becomes_a_folder_of_the_same_images(
    tmp_path: Path, tiny_rows: Rows, folder_maker: Callable[..., Path]
) -> None:
    zipped = Benchmark.open(folder_maker(tmp_path / "zipped", tiny_rows, zipped=True))
    export_benchmark(zipped, tmp_path / "out", format="jsonl")
    assert Benchmark.open(tmp_path / "out").images.listing() == zipped.images.listing()


@pytest.mark.parametrize(("form", "embed"), FORMS)
def test_images_missing_before_are_missing_after_and_counted(
    tiny_folder: Path, tmp_path: Path, form: Any, embed: bool
) -> None:
    (tiny_folder / "images/case00300/300_1.jpg").unlink()
    (tiny_folder / "images/case00301/301_2.jpg").unlink()
    original = Benchmark.open(tiny_folder)
    done = export_benchmark(original, tmp_path / "out", format=form, embed_images=embed)
    assert (done.images, len(done.absent)) == (57, 2)
    copy = Benchmark.open(tmp_path / "out")
    assert copy.fingerprint() == original.fingerprint()
    assert not copy.images.has("images/case00300/300_1.jpg")


def test_defective_cases_survive_too(tmp_path: Path, row_maker: Any) -> None:
    rows = [
        row_maker(1, options={}, correct_answer="", image_count=9),
        row_maker(2, options={"A": "x", "Z": "y"}, CLINICAL_HISTORY=""),
        row_maker(2, image_07_id="gap", image_07_path="../../escape.jpg"),
        row_maker(4, big=2**63, mixed=1, flag=True),
        row_maker(5, big=-1, mixed="x", flag=False, **{"with space": 1.5}),
    ]
    write_jsonl(tmp_path / "in/test.jsonl", rows)
    original = Benchmark.open(tmp_path / "in")
    for form in ("parquet", "jsonl"):
        export_benchmark(original, tmp_path / form, format=form)
        assert rows_of(tmp_path / form) == rows_of(tmp_path / "in")
    assert not list(tmp_path.rglob("escape*"))


def test_options_that_are_not_letters_survive(tmp_path: Path, row_maker: Any) -> None:
    write_jsonl(tmp_path / "in/test.jsonl", [row_maker(1, options={"first": "x", "": "y"})])
    export_benchmark(Benchmark.open(tmp_path / "in"), tmp_path / "out", format="parquet")
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "in")


def test_embedding_beside_a_column_of_that_name_is_refused(tmp_path: Path, row_maker: Any) -> None:
    write_jsonl(tmp_path / "in/test.jsonl", [row_maker(1, image_03="taken")])
    with pytest.raises(DataError, match="image_03"):
        export_benchmark(Benchmark.open(tmp_path / "in"), tmp_path / "out", format="parquet", embed_images=True)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_failure_leaves_nothing_behind(tiny_folder: Path, tmp_path: Path, row_maker: Any, form: Any) -> None:
    out = tmp_path / "deep/out"
    write_jsonl(tiny_folder / "test.jsonl", [row_maker(300), row_maker(301, options=7)])
    with pytest.raises(DataError, match="options"):
        export_benchmark(Benchmark.open(tiny_folder), out, format=form)
    assert list(out.parent.iterdir()) == []


def test_a_full_disk_is_one_message_and_leaves_nothing(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DataError, match="No space left"):
        export_benchmark(Benchmark.open(tiny_folder), tmp_path / "out", format="jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny"]


def test_what_stands_there_is_not_overwritten(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        with pytest.raises(DataError, match="the folder is not empty"):
            export_benchmark(Benchmark.open(tiny_folder), tmp_path / name, format="jsonl")
    (tmp_path / "empty").mkdir()
    export_benchmark(Benchmark.open(tiny_folder), tmp_path / "empty", format="jsonl")
    assert (tmp_path / "full/mine.txt").read_text() == "mine"
    assert (tmp_path / "empty/test.jsonl").exists()


def test_the_folder_has_ordinary_permissions(tiny_folder: Path, tmp_path: Path) -> None:
    export_benchmark(Benchmark.open(tiny_folder), tmp_path / "out", format="jsonl")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_embedded_image_cannot_be_written_outside_the_folder(tmp_path: Path, row_maker: Any) -> None:
    row = row_maker(1, images=1, image_01_path="../escape.jpg")
    columns = {name: [value] for name, value in row.items()} | {"image_01": [b"picture"]}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "in/test.parquet")
    done = export_benchmark(Benchmark.open(tmp_path / "in"), tmp_path / "out", format="jsonl")
    assert (done.cases, done.images, list(done.absent)) == (1, 0, ["../escape.jpg"])
    assert not list(tmp_path.rglob("escape*"))


class TestEmbeddedImages:
    @pytest.fixture
    def embedded_folder(self, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(export, "_GROUP_CASES_WITH_IMAGES", 2)
        export_benchmark(Benchmark.open(tiny_folder), tmp_path / "e", format="parquet", embed_images=True)
        return tmp_path / "e"

    def test_they_are_read_by_path(self, embedded_folder: Path, tiny_folder: Path) -> None:
        benchmark = Benchmark.open(embedded_folder)
        assert benchmark.sources == "train.parquet, test.parquet; images: embedded in train.parquet, test.parquet"
        original = Benchmark.open(tiny_folder).images
        assert benchmark.images.listing() == original.listing()
        for path in chain(*original.listing().values()):
            assert benchmark.images.read(path) == original.read(path)
        assert benchmark.images.problem("images/no.jpg") == "no such image"
        assert benchmark.images.problem("../x.jpg")
        file = pq.ParquetFile(embedded_folder / "train.parquet")
        assert file.num_row_groups == 2  # of two cases each: a reader holds the images of a group
        assert file.read(["image_01"])[0][0].as_py()["path"] == "images/case00007/7_1.jpg"

    def test_each_stands_in_the_column_of_its_slot(
        self, tmp_path: Path, row_maker: Any, folder_maker: Callable[..., Path]
    ) -> None:
        row = row_maker(1, images=3)
        gap = {name: value for name, value in row.items() if not name.startswith("image_02")}
        source = Benchmark.open(folder_maker(tmp_path / "in", {"test": [gap]}))
        export_benchmark(source, tmp_path / "out", format="parquet", embed_images=True)
        assert Benchmark.open(tmp_path / "out").fingerprint() == source.fingerprint()

    def test_a_jsonl_beside_them_finds_them(self, embedded_folder: Path, tiny_folder: Path) -> None:
        (tiny_folder / "test.jsonl").rename(embedded_folder / "test.jsonl")
        benchmark = Benchmark.open(embedded_folder / "test.jsonl")
        assert benchmark.sources == "test.jsonl; images: embedded in test.parquet"
        assert all(image.read() for case in benchmark for image in case.question.images)

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
        """What is read of the files: a number for the row group, and the columns."""
        calls: list[tuple[int, list[str]]] = []
        real = pq.ParquetFile.read_row_group

        def spy(self: Any, group: int, columns: list[str], **options: Any) -> Any:
            calls.append((self.metadata.num_rows * 100 + group, columns))
            return real(self, group, columns=columns, **options)

        monkeypatch.setattr(pq.ParquetFile, "read_row_group", spy)
        return calls

    def test_every_chunk_is_read_once_when_cases_come_in_order(
        self, embedded_folder: Path, asked: list[tuple[int, list[str]]]
    ) -> None:
        benchmark = Benchmark.open(embedded_folder)
        benchmark.images.listing()
        # The bytes are not read to list them.
        assert all(column.endswith(("_path", ".path")) for _, columns in asked for column in columns)
        asked.clear()
        for case in benchmark:
            for image in case.question.images:
                image.read()
        chunks = [(group, *columns) for group, columns in asked]
        assert chunks and len(chunks) == len(set(chunks))

    def test_the_last_chunks_are_kept_as_far_as_they_fit(
        self, embedded_folder: Path, asked: list[tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, two, three = Benchmark.open(embedded_folder).case(12).question.images
        monkeypatch.setattr(embedded, "_CACHE_BYTES", int(2.5 * len(one.read())))
        asked.clear()
        for image in (two, one, three, one, two):
            assert image.read()
        assert [columns for _, columns in asked] == [["image_02"], ["image_03"], ["image_02"]]

    def test_they_travel_between_processes(self, embedded_folder: Path) -> None:
        case = pickle.loads(pickle.dumps(Benchmark.open(embedded_folder).case(300)))
        assert all(image.read() for image in case.question.images)

    def test_the_limits_hold(self, embedded_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embedded, "MAX_IMAGE_BYTES", 5)
        with pytest.raises(DataError, match="larger than"):
            Benchmark.open(embedded_folder).case(300).question.images[0].read()

    def test_plain_bytes_and_rows_without_bytes(self, tmp_path: Path, row_maker: Any) -> None:
        rows = [row_maker(1, images=3), row_maker(2, images=3)]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        columns["image_01"] = [b"one", None]
        columns["image_02"] = pa.array([{"bytes": b"two"}, {"bytes": None}])
        columns["image_03"] = pa.array([{"bytes": None, "path": "elsewhere.jpg"}, None])
        pq.write_table(pa.table(columns), tmp_path / "test.parquet")
        first, second = Benchmark.open(tmp_path)
        assert [image.read() for image in first.question.images[:2]] == [b"one", b"two"]
        assert not second.question.images[0].store.has(second.question.images[0].path)
        with pytest.raises(DataError, match="no bytes"):
            first.question.images[2].read()


def pack_with_a_damaged_image(root: Path) -> None:
    with zipfile.ZipFile(root / "images.zip", "w") as archive:
        for file in sorted((root / "images").rglob("*.jpg")):
            archive.write(file, str(file.relative_to(root)))
    shutil.rmtree(root / "images")
    raw = bytearray((root / "images.zip").read_bytes())
    raw[60] ^= 0xFF  # inside the first picture
    (root / "images.zip").write_bytes(raw)


class TestCommand:
    def test_it_says_what_it_wrote(self, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        words = [
            "data",
            "export",
            str(tiny_folder),
            "-o",
            str(tmp_path / "out"),
            "--format",
            "parquet",
            "--embed-images",
        ]
        assert run_command(words) == 0
        assert "5 cases, 59 images" in capsys.readouterr().out
        (tiny_folder / "images/case00300/300_1.jpg").unlink()
        assert run_command([*words[:3], "-o", str(tmp_path / "out2"), "--format", "jsonl"]) == 1
        said = capsys.readouterr().err
        assert "could not be copied: 1" in said and "images/case00300/300_1.jpg: no such image" in said
        assert Benchmark.open(tmp_path / "out2").case(301).question.images[0].read()

    @pytest.mark.parametrize(("form", "embed"), FORMS)
    def test_an_image_that_cannot_be_read_is_not_exit_0(
        self, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, embed: bool
    ) -> None:
        words = ["data", "export", str(tiny_folder), "-o", str(tmp_path / "out"), "--format", form]
        words += ["--embed-images"] if embed else []
        image = tiny_folder / "images/case00300/300_1.jpg"
        whole = image.read_bytes()
        image.unlink()
        image.symlink_to("/etc/passwd")
        assert run_command(words) == 1
        assert "could not be copied: 1\n  images/case00300/300_1.jpg: a symbolic link" in capsys.readouterr().err
        assert sum(len(paths) for paths in Benchmark.open(tmp_path / "out").images.listing().values()) == 58
        shutil.rmtree(tmp_path / "out")
        image.unlink()
        image.write_bytes(whole[: len(whole) // 2])
        assert run_command(words) == 1
        assert "copied unchanged: 1\n  images/case00300/300_1.jpg: " in capsys.readouterr().err
        assert Benchmark.open(tmp_path / "out").case(300).question.images[0].read() == image.read_bytes()
        shutil.rmtree(tmp_path / "out")
        image.write_bytes(whole)
        pack_with_a_damaged_image(tiny_folder)
        assert run_command(words) == 2
        assert "cannot be unpacked" in capsys.readouterr().err and not (tmp_path / "out").exists()

    def test_a_benchmark_without_any_images_says_so(
        self, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shutil.rmtree(tiny_folder / "images")
        assert run_command(["data", "export", str(tiny_folder), "-o", str(tmp_path / "out"), "--format", "jsonl"]) == 0
        assert "there are no images" in capsys.readouterr().err

    def test_wrong_use_is_exit_2(self, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        base = ["data", "export", str(tiny_folder), "-o", str(tmp_path / "out")]
        assert run_command(base) == 2
        assert run_command([*base, "--format", "csv"]) == 2
        assert run_command([*base, "--format", "jsonl", "--embed-images"]) == 2
        assert "only parquet can embed" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_a_killed_export_leaves_no_benchmark(tiny_folder: Path, tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from medthink.cases.files.export import export_benchmark\n"
        "from medthink.cases.benchmark import Benchmark\n"
        "calls = []\n"
        "def stop():\n    calls.append(1)\n    len(calls) == 3 and os.kill(os.getpid(), 9)\n"
        "export_benchmark(Benchmark.open(sys.argv[1]), Path(sys.argv[2]), format='jsonl', progress=stop)"
    )
    command = [sys.executable, "-c", script, str(tiny_folder), str(tmp_path / "out")]
    assert subprocess.run(command, check=False, env=os.environ).returncode == -9
    assert not (tmp_path / "out").exists()
