"""From raw phantoms with faults of every kind to a benchmark: each fault is caught at its stage."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from built_once import built_once
from calling import call_command
from check_planted import check
from medthink.cases.benchmark import Benchmark
from medthink.cases.check import check_benchmark
from medthink.cli.curate import curate
from medthink.cli.data.data import data
from medthink.curate.plan import WorkFolder
from medthink.phantoms.raw_cases import FAULTS, FEWEST_RAW, write_raw

# One worker builds while the others wait, and waiting counts.
pytestmark = pytest.mark.timeout(900)
CASES = FEWEST_RAW


def _build(folder: Path) -> None:
    made = call_command(data, ["synth", "-o", folder, "--raw", "--count", CASES, "--seed", 4])
    assert made.exit_code == 0, made.output
    built = call_command(curate, ["build", folder / "plan.toml"])
    assert built.exit_code == 0, built.output
    assert "Not checked by leaks: synonyms" in built.output


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> Path:
    return built_once(tmp_path_factory, "curate-demo", _build)


def test_each_fault_is_caught_at_its_stage(raw):
    planted = json.loads((raw / "planted.json").read_text(encoding="utf-8"))
    assert {one["name"] for one in planted} == {fault.name for fault in FAULTS}
    caught, missed, _ = check(planted, WorkFolder(raw / "work"))
    assert not {name: cases for name, cases in missed.items() if cases and name != "a word that gives the answer away"}
    # A guesser learns a shortcut from examples: it may overlook one.
    assert len(missed["a word that gives the answer away"]) <= 2
    assert all(caught[fault.name] for fault in FAULTS)


def test_the_counts_add_up_from_stage_to_stage(raw):
    stages = list(WorkFolder(raw / "work").read_summaries().values())
    for one, following in pairwise(stages):
        assert one.counts.seen == one.counts.passed + one.counts.out + one.counts.undecided
        assert following.counts.seen == one.counts.passed
    assert stages[0].counts.seen == CASES


def test_the_benchmark_passes_the_check_and_its_card_shows_the_funnel(raw):
    out = raw / "work/benchmark"
    benchmark = Benchmark.open(out)
    assert not check_benchmark(benchmark, images=True).errors
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"| ingest | {CASES} |" in card and "CC0-1.0" in card and "guesser on options" in card
    assert "<svg" in (out / "funnel.svg").read_text(encoding="utf-8")
    assert not [case for case in benchmark if "Biopsy" in json.dumps(case.question.options)][3:]


def test_a_second_build_does_nothing_and_says_the_same(raw):
    before = {path: path.stat().st_mtime_ns for path in (raw / "work/cases").glob("*.jsonl")}
    again = call_command(curate, ["build", raw / "plan.toml", "--json"])
    assert again.exit_code == 0, again.output
    assert {path: path.stat().st_mtime_ns for path in before} == before
    told = json.loads(again.stdout)
    assert told["stages"][0]["counts"]["seen"] == CASES and told["waiting"] > 0


def test_raw_phantoms_are_the_same_for_the_same_seed(tmp_path):
    first = write_raw(tmp_path / "a", cases=FEWEST_RAW, seed=1, paint=False)
    second = write_raw(tmp_path / "b", cases=FEWEST_RAW, seed=1, paint=False)
    assert first == second
    assert (tmp_path / "a/cases.csv").read_bytes() == (tmp_path / "b/cases.csv").read_bytes()
