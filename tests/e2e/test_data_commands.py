"""`medthink data check`, `stats` and `show`, from the command line to the exit code."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medthink.cases.check import DEFECTS
from medthink.core.jsonio import read_jsonl, write_jsonl


def medthink(*words: object, columns: int = 100) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "medthink", *map(str, words)]
    environment = {"COLUMNS": str(columns), "PATH": "", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def phantom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("phantom") / "bench"
    assert medthink("data", "synth", "-o", out, "--count", 10).returncode == 0
    return out


@pytest.fixture(scope="module")
def defective(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("defective") / "bench"
    assert medthink("data", "synth", "-o", out, "--count", 80, "--defects").returncode == 0
    return out


def test_a_sound_benchmark_passes(phantom: Path) -> None:
    done = medthink("data", "check", phantom, "--images")
    assert (done.returncode, done.stderr) == (0, "")
    assert "10 cases" in done.stdout and "0 errors" in done.stdout and "0 warnings" in done.stdout
    assert "(opened)" in done.stdout


def test_every_planted_defect_is_found_where_it_was_planted(defective: Path) -> None:
    done = medthink("data", "check", defective, "--images", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    found = {(each["code"], each["split"], each["case"], each["field"]) for each in report["problems"]}
    planted = {
        (each["code"], each["split"], each["case"], each["field"])
        for each in json.loads((defective / "planted.json").read_bytes())
    }
    assert planted - found == set()
    assert {code for code, *_ in found} == {code for code, *_ in planted}
    assert report["errors"] + report["warnings"] == len(report["problems"]) == sum(report["counts"].values())


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_table_fits_the_terminal(defective: Path, columns: int) -> None:
    done = medthink("data", "check", defective, columns=columns)
    assert done.returncode == 1
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "docs/checks.md" in done.stderr


def test_long_lists_are_cut_and_say_so(phantom: Path, tmp_path: Path) -> None:
    rows = [line.value | {"discussion": ""} for line in read_jsonl(phantom / "train.jsonl")]
    lonely = tmp_path / "train.jsonl"
    lonely.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = medthink("data", "check", lonely)
    assert done.returncode == 1  # without its images
    assert f"reference-empty × {len(rows)}" in done.stdout
    assert f"+ {len(rows) - 5} more" in done.stdout


def test_warnings_alone_are_exit_0(phantom: Path, tmp_path: Path) -> None:
    bench = shutil.copytree(phantom, tmp_path / "bench")
    first, *others = (line.value for line in read_jsonl(bench / "test.jsonl"))
    write_jsonl(bench / "test.jsonl", [first | {"discussion": ""}, *others])
    done = medthink("data", "check", bench)
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(done.stdout.split())
    assert "(not opened; --images checks their contents)" in shown and "0 errors" in shown and "1 warning " in shown
    assert "reference-empty × 1" in shown and DEFECTS["reference-empty"].remedy in shown
    assert f"test {first['title'].split()[-1]} discussion" in shown


@pytest.mark.parametrize("content", ["", "{", "[1]\n", '{"title": "Case number 1"}\n'])
def test_bad_files_give_one_message_and_no_traceback(tmp_path: Path, content: str) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text(content)
    done = medthink("data", "check", path)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr and done.stderr.startswith("medthink: ")


def test_a_missing_benchmark_is_exit_2(tmp_path: Path) -> None:
    done = medthink("data", "check", tmp_path / "nowhere")
    assert done.returncode == 2
    assert "no such file" in done.stderr and "Traceback" not in done.stderr


def test_stats_as_table_json_and_figure(phantom: Path, tmp_path: Path) -> None:
    figure = tmp_path / "stats.svg"
    done = medthink("data", "stats", phantom, "--figure", figure, columns=80)
    assert (done.returncode, done.stderr) == (0, "")
    table, _, _ = done.stdout.partition("Figure: ")
    assert max(map(len, table.splitlines())) <= 80
    for words in ("Images per case, mean", "Answer letters", "ICD-10 chapters", "Timepoints", "Longitudinal cases"):
        assert words in done.stdout
    assert figure.read_text().startswith("<?xml")
    counts = json.loads(medthink("data", "stats", phantom, "--json").stdout)
    assert counts["overall"]["cases"] == 10 == sum(split["cases"] for split in counts["splits"].values())
    assert counts["overall"]["images_per_case_mean"] == counts["overall"]["images"] / 10
    assert counts["overall"]["longitudinal_share"] == counts["overall"]["longitudinal_cases"] / 10
    assert counts["overall"]["modalities_per_case_mean"] == counts["overall"]["modalities_summed"] / 10


def test_a_figure_of_another_kind_is_refused(phantom: Path, tmp_path: Path) -> None:
    done = medthink("data", "stats", phantom, "--figure", tmp_path / "stats.gif")
    assert done.returncode == 2
    assert ".svg" in done.stderr
    assert not (tmp_path / "stats.gif").exists()


def test_show_withholds_until_asked(phantom: Path) -> None:
    row = next(iter(read_jsonl(phantom / "test.jsonl"))).value
    number = row["title"].split()[-1]
    shown = " ".join(medthink("data", "show", phantom, number).stdout.split())
    revealed = " ".join(medthink("data", "show", phantom, number, "--reveal").stdout.split())
    assert " ".join(row["CLINICAL_HISTORY"].split()[:6]) in shown
    start = " ".join(row["IMAGING_FINDINGS"].split()[:6])
    assert start not in shown and start in revealed
    assert row["ICD Category"] not in shown and row["ICD Category"] in revealed
    assert row["image_01_modality"] + " " not in shown
    for field in ("image_01_caption", "discussion"):
        start = " ".join(row[field].split()[:3])
        assert start not in shown and start in revealed
    assert f"Answer {row['correct_answer']}" not in shown and f"Answer {row['correct_answer']}" in revealed


def test_show_says_which_image_is_missing_and_prints_no_control_characters(phantom: Path, tmp_path: Path) -> None:
    bench = shutil.copytree(phantom, tmp_path / "bench")
    row = next(iter(read_jsonl(bench / "test.jsonl"))).value
    (bench / row["image_02_path"]).unlink()
    write_jsonl(bench / "test.jsonl", [row | {"CLINICAL_HISTORY": "\x1b[31mRed\x07", "discussion": "\x1b[2J"}])
    shown = medthink("data", "show", bench, row["title"].split()[-1], "--reveal").stdout
    assert "Red" in shown and "\x1b" not in shown and "\x07" not in shown
    words = " ".join(shown.split())
    assert f"{row['image_01_path']} yes" in words and f"{row['image_02_path']} no" in words


def test_show_writes_a_page(phantom: Path, tmp_path: Path) -> None:
    row = next(iter(read_jsonl(phantom / "test.jsonl"))).value
    page = tmp_path / "case.html"
    done = medthink("data", "show", phantom, row["title"].split()[-1], "--html", page)
    assert done.returncode == 0
    assert page.read_text().count("<img ") == row["image_count"]
    assert "<details open" not in page.read_text()
    medthink("data", "show", phantom, row["title"].split()[-1], "--html", page, "--reveal")
    assert "<details open" in page.read_text()


def test_show_of_an_unknown_case_is_exit_2(phantom: Path) -> None:
    done = medthink("data", "show", phantom, 999_999)
    assert done.returncode == 2
    assert "no case 999999" in done.stderr
    numbers = [line.value["title"].split()[-1] for line in read_jsonl(phantom / "test.jsonl")]
    assert f"test {', '.join(sorted(numbers, key=int))} ({len(numbers)} case" in done.stderr
