"""`medthink show`: the cases of a run, one in full, as text, JSON and a page."""

import json
import re

import pytest

from made_runs import make_run
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from small_benchmark import write_benchmark


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("show")
    bench = write_benchmark(root / "bench", cases=10)
    assert (
        run_command(["run", str(bench), "--model", "baseline/longest", "--task", "twi", "--out", str(root / "run")])
        == 0
    )
    return root / "run"


def listed(capsys, *words):
    assert run_command(["show", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["cases"]


def test_the_list_says_state_answer_right_or_wrong_and_cost(run, capsys):
    rows = listed(capsys, run)
    assert {row["case"] for row in rows} == set(range(100, 110))
    assert all(row["is_right"] == (row["answer"] == "ABCDE"[row["case"] % 5]) for row in rows)
    assert run_command(["show", str(run)]) == 0
    shown = capsys.readouterr().out
    for row in rows:
        right = "right" if row["is_right"] else "wrong"
        assert re.search(rf"^ *{row['case']}  ok +{row['answer']} +{right} +\d+ +\$0\.00", shown, re.MULTILINE)


def test_wrong_and_failed_choose_cases(run, tmp_path, capsys):
    rows = listed(capsys, run)
    wrong = [row["case"] for row in rows if not row["is_right"]]
    assert 0 < len(wrong) < 10
    assert [row["case"] for row in listed(capsys, run, "--wrong")] == wrong
    assert listed(capsys, run, "--failed") == []
    silent = make_run(tmp_path / "silent", run.parent / "bench", silent=2, skill=0.0)
    assert [row["state"] for row in listed(capsys, silent, "--failed")] == ["unparsed"] * 2
    assert len(listed(capsys, silent, "--failed", "--wrong")) == 10
    assert run_command(["show", str(run), "100", "--wrong"]) == 2


def test_one_case_shows_prompts_replies_paths_and_the_result(run, capsys):
    assert run_command(["show", str(run), "103"]) == 0
    shown = capsys.readouterr().out
    told = (shown.count("[system]"), shown.count("[reply, end]"))
    assert told == (4, 4)  # two images, the summary, the differential
    assert f"image 2: {run.parent}/bench/images/case00103/i103x2.jpg" in shown
    assert "A patient, number 103 of the clinic" in shown
    assert '"step2_integrated_summary"' in shown
    assert run_command(["show", str(run), "103", "--json"]) == 0
    case = json.loads(capsys.readouterr().out)
    assert [call["kind"] for call in case["calls"]].count("findings") == 2
    assert case["correct"] == "D"
    assert run_command(["show", str(run), "7"]) == 2
    assert "has not asked about case 7" in capsys.readouterr().err


def test_the_page_stands_alone_and_holds_no_markup_of_the_model(run, tmp_path, capsys):
    bench = run.parent / "bench"
    made = make_run(tmp_path / "run", bench, words="<script>alert(1)</script>", skill=0.0)
    page = tmp_path / "page.html"
    assert run_command(["show", str(made), "--wrong", "--html", str(page)]) == 0
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert text.count("data:image/") == 20
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    known = [case.reference for case in Benchmark.open(bench)["test"]]
    withheld = {text for one in known for text in (one.findings, one.discussion, *(i.caption for i in one.images))}
    assert withheld and not [one for one in withheld if one in text]
    assert "is-gold" not in text.partition("</style>")[2]
    assert run_command(["show", str(made), "--failed", "--html", str(page)]) == 2
    assert "no case is left" in capsys.readouterr().err
