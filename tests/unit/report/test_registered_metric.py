"""A metric that is registered appears by itself: in scores, tables, exports and figures."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from calling import call_command
from made_runs import make_run
from medthink.cli.results.score import score
from medthink.core.errors import UsageError
from medthink.metrics.registry import METRICS, Metric, register
from medthink.report.exports import csv_table
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries


def length_ratio(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    return [min(len(c) / len(r), 1.0) if r else None for r, c in zip(references, candidates, strict=True)]


RATIO = Metric("length_ratio", "1", "pairs", "higher", 0.0, 1.0, "length_ratio", length_ratio, label="length ratio")


@pytest.fixture
def registered():
    register(RATIO)
    yield
    del METRICS[RATIO.name]


@pytest.fixture
def run(bench: Path, tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", bench, model="server/new", task="twi", skill=0.5)


def test_a_registered_metric_appears_everywhere(registered, run, bench, tmp_path):
    other = make_run(tmp_path / "other", bench, model="server/other", task="twi", skill=0.5)
    said = call_command(score, [run, other], env={"COLUMNS": "200"})
    assert "length ratio ↑" in said.output
    step = json.loads((run / "scores.json").read_text())["steps"][0]
    assert RATIO.name in {metric["metric"] for metric in step["metrics"]}
    assert step["case_values"][RATIO.name].keys() == step["case_values"]["rougeL"].keys() != set()
    groups = group_entries(load_entries([run, other]))
    assert f"findings_{RATIO.name}" in csv_table(groups).splitlines()[0].split(",")
    page = report_page(groups, [], [])
    assert '<th scope="col" class="number">Length ratio' in page
    assert "Length ratio of written steps, case by case" in page
    assert "Length ratio: 0 to 1; higher is better." in page


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(UsageError, match="rougeL"):
        register(METRICS["rougeL"])
