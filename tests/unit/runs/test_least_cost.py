"""A reply that never arrived may have been billed: wherever the run's cost is shown, it is "at least"."""

import csv
import json
import re
from pathlib import Path

import pytest

from ledger_rows import alter
from made_runs import make_run
from medthink.cli.command import run_command
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.run import Run, write_results
from small_benchmark import write_benchmark
from web_pages import open_viewer, slug

LEAST = "at least $0.013"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Twelve cases at a tenth of a cent, one of them asked again after the process died."""
    root = tmp_path_factory.mktemp("least")
    made = make_run(root / "run", write_benchmark(root / "bench", 12), usd=0.001)
    alter(
        made / "ledger.sqlite",
        "INSERT INTO attempts SELECT key, 0, '', 'unknown', 1, 0.0, NULL, 0.001, 1, 0.0, '' FROM calls"
        " WHERE case_id = 103",
        "UPDATE predictions SET body = json_set(body, '$.cost_usd', 0.001)",
    )
    ledger = Ledger(made / "ledger.sqlite")
    write_results(made, Run.open(made).manifest, ledger, 12)
    ledger.close()
    return made


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def said(capfdbinary, *words: object) -> str:
    assert run_command([str(word) for word in words]) == 0
    return capfdbinary.readouterr().out.decode()


def test_in_the_terminal(run, capfdbinary):
    assert f"{LEAST}: the tokens of 1 attempt were not counted" in said(capfdbinary, "status", run)
    assert LEAST in said(capfdbinary, "score", run)
    listed = said(capfdbinary, "show", run)
    assert re.search(r"^ *103 .* at least \$0\.001", listed, re.MULTILINE)
    assert listed.count("at least") == 1
    assert said(capfdbinary, "show", run, 103).count("at least $0.00") == 2
    assert "at least" not in said(capfdbinary, "show", run, 104)


def test_in_json(run, capfdbinary):
    assert json.loads(said(capfdbinary, "score", run, "--json"))[0]["usage"]["uncounted_replies"] == 1
    assert json.loads(said(capfdbinary, "status", run, "--json"))["progress"]["uncounted_replies"] == 1
    rows = json.loads(said(capfdbinary, "show", run, "--json"))
    listed = rows if isinstance(rows, list) else rows["cases"]
    assert [row["case"] for row in listed if row["is_least_cost"]] == [103]


def test_in_the_report_and_its_exports(run, tmp_path, capfdbinary):
    flags = ["--csv", tmp_path / "t.csv", "--markdown", tmp_path / "t.md", "--latex", tmp_path / "t.tex"]
    said(capfdbinary, "report", run, "-o", tmp_path / "page.html", *flags)
    assert (tmp_path / "page.html").read_text().count(LEAST) >= 2
    assert LEAST in (tmp_path / "t.md").read_text().replace("\\$", "$")
    assert r"at least \$0.013" in (tmp_path / "t.tex").read_text()
    with (tmp_path / "t.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert (row["cost_usd"], row["uncounted_replies"]) == ("0.013", "1")


def test_in_the_browser_and_the_notebook(run, tmp_path):
    assert LEAST in Run.open(run)._repr_html_()
    viewer, client = open_viewer(run, tmp_path)
    with client:
        address = f"/runs/{slug(viewer, 'run')}"
        assert LEAST in client.get("/").text
        assert LEAST in client.get(address).text
        assert "at least $0.001" in client.get(f"{address}/cases/103").text
        assert "at least" not in client.get(f"{address}/cases/104").text


def test_a_run_that_was_killed_counts_the_calls_that_nobody_waits_for(run, tmp_path, capfdbinary):
    root = tmp_path
    killed = make_run(root / "killed", write_benchmark(root / "bench", 12), usd=0.001)
    lost = "case_id = 103"
    alter(
        killed / "ledger.sqlite",
        f"DELETE FROM attempts WHERE call_key = (SELECT key FROM calls WHERE {lost})",
        f"UPDATE calls SET state = 'open', reply = NULL, worst_usd = 0.004 WHERE {lost}",
        f"DELETE FROM predictions WHERE {lost}",
    )
    (killed / "predictions.jsonl").unlink()
    assert "at least $0.015" in said(capfdbinary, "score", killed)
    assert "at least $0.015" in said(capfdbinary, "status", killed)
