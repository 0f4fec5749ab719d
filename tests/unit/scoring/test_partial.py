"""A run that was stopped is scored, compared and reported with the mark n of N, and never passes for a whole one."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger_rows import replace_predictions
from medthink.cli.command import run_command
from medthink.core.errors import DataError, UsageError
from medthink.runs.run import Run, is_settled
from medthink.scoring.compare import compare_paths
from medthink.scoring.inputs import load_run
from medthink.scoring.score import cached_scores, score_run
from medthink.scoring.scores import PartialRun
from medthink.workflow.condition import Condition


@pytest.fixture
def partial(make_run) -> Path:
    return make_run("partial", max_calls=14)


@pytest.fixture
def whole(make_run) -> Path:
    return make_run("whole", model="baseline/longest")


def run_captured(capfdbinary, *words: object) -> tuple[int, str, str]:
    code = run_command([str(word) for word in words])
    out, err = capfdbinary.readouterr()
    return code, out.decode(), err.decode()


def test_scores_are_over_the_finished_cases_and_say_how_many_there_should_be(partial):
    scores = score_run(partial)
    assert scores.partial == PartialRun(14, 40)
    assert (scores.answers.n_cases, len(scores.cases)) == (14, 14)
    assert scores.notes[0].startswith("Partial: 14 of 40 cases.")
    assert "14 of 40 cases" in repr(scores) and "14 of 40" in scores._repr_html_()
    assert json.loads((partial / "scores.json").read_text())["partial"] == {"done": 14, "due": 40}


def test_the_table_and_the_json_have_the_mark(partial, whole, capfdbinary):
    code, out, _ = run_captured(capfdbinary, "score", partial, whole)
    assert code == 0
    assert "14 of 40" in out and "partial: Partial: 14 of 40 cases." in out
    code, out, _ = run_captured(capfdbinary, "score", partial, whole, "--json")
    assert [one["partial"] for one in json.loads(out)] == [{"done": 14, "due": 40}, None]


def test_kept_scores_of_a_partial_run_are_made_again_once_it_went_on(partial, make_run):
    assert cached_scores(partial, load_run(partial)).partial == PartialRun(14, 40)
    make_run("partial")
    assert cached_scores(partial, load_run(partial)).partial is None


def test_a_killed_run_is_scored_by_its_ledger(partial):
    (partial / "predictions.jsonl").unlink()
    assert not is_settled(partial)
    for _ in range(2):
        assert cached_scores(partial, load_run(partial)).partial == PartialRun(14, 40)


def test_a_case_counts_once_all_of_its_samples_are_there(make_run):
    run = make_run("samples", condition=Condition(samples=3), max_calls=10)
    scores = score_run(run)
    assert (scores.partial, scores.answers.n_predictions) == (PartialRun(3, 40), 9)


def test_a_run_without_a_finished_case_says_so(make_run):
    run = make_run("samples", condition=Condition(samples=3), max_calls=2)
    with pytest.raises(DataError, match="no case is finished yet"):
        score_run(run)


def test_predictions_that_are_not_the_runs_are_refused(partial):
    path = partial / "predictions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    replace_predictions(partial, b"".join([*lines, lines[0]]))
    with pytest.raises(DataError, match="2 predictions of case 100, which has 1"):
        score_run(partial)


def test_partial_runs_are_compared_on_the_cases_that_all_have(partial, whole, make_run, capfdbinary):
    further = make_run("further", model="baseline/guesser", max_calls=25)
    found = compare_paths([partial, whole, further])
    assert found.n_cases == 14
    assert found.partial == {str(partial): PartialRun(14, 40), str(further): PartialRun(25, 40)}
    _, out, _ = run_captured(capfdbinary, "compare", partial, whole)
    assert "Partial: partial has 14 of 40 cases. Compared on the 14 cases that all have." in out
    _, out, _ = run_captured(capfdbinary, "compare", partial, whole, "--json")
    assert json.loads(out)["partial"] == {str(partial): {"done": 14, "due": 40}}
    cut = [one for one in load_run(whole).predictions if one.case < 114]
    right = sum(one.prediction == load_run(whole).cases[one.case].reference.answer for one in cut) / 14
    (mean,) = [place.mean.value for place in found.ranking.runs if found.runs[place.run] == str(whole)]
    assert mean == pytest.approx(right), "the whole run too counts on the common cases alone"
    _, out, _ = run_captured(capfdbinary, "compare", partial, whole, further, "--by-case", "--json")
    assert json.loads(out)["partial"].keys() == {str(partial), str(further)}


def test_runs_without_a_common_case_and_of_other_selections_are_refused(partial, make_run, some_cases):
    with pytest.raises(UsageError, match="the selection of cases differs"):
        compare_paths([partial, make_run("few", selection=some_cases)])
    one = make_run("one", selection=replace(some_cases, limit=None), model="baseline/longest", max_calls=14)
    for run, case in ((one, b'"case":100,'), (partial, b'"case":101,')):
        lines = (run / "predictions.jsonl").read_bytes().splitlines(keepends=True)
        replace_predictions(run, b"".join(line for line in lines if case in line))
    with pytest.raises(UsageError, match="no finished cases in common"):
        compare_paths([one, partial])


def test_the_report_and_its_exports_have_the_mark(partial, whole, tmp_path, capfdbinary):
    names = {name: tmp_path / f"report.{name}" for name in ("html", "csv", "md", "tex")}
    flags = ["-o", names["html"], "--csv", names["csv"], "--markdown", names["md"], "--latex", names["tex"]]
    code, _, err = run_captured(capfdbinary, "report", partial, whole, *flags)
    assert code == 0, err
    page = names["html"].read_text()
    assert "baseline/random [14 of 40 cases]" in page
    assert "Unaided runs on bench, test split, 14 of 40 cases" in page
    assert "baseline/longest [" not in page
    assert "14 of 40 cases" in names["md"].read_text()
    assert "14 of 40 cases" in names["tex"].read_text()
    with names["csv"].open() as stream:
        rows = {row["run"]: (row["group"], row["cases"], row["cases_due"]) for row in csv.DictReader(stream)}
    assert sorted(counted[1:] for counted in rows.values()) == [("14", "40"), ("40", "40")]
    assert len({counted[0] for counted in rows.values()}) == 2, "never ranked together"


def test_what_leaves_the_house_must_be_whole(partial, bench, tmp_path, capfdbinary):
    for words in (
        ("submission", "pack", partial, "-o", tmp_path / "s.jsonl"),
        ("submission", "hub", partial, "-o", tmp_path / "s.yaml"),
        ("run", bench, "--model", "baseline/random", "--stop-when", partial, "--out", tmp_path / "known"),
    ):
        code, _, err = run_captured(capfdbinary, *words)
        assert (code, "is not finished: it has 14 of 40 cases" in err) == (2, True), words


def test_a_partial_run_of_written_steps_is_scored(make_run, twi):
    run = make_run("twi", model="baseline/retrieval", max_calls=60, **twi)
    scores = score_run(run)
    done = scores.partial.done
    assert 0 < done < 40
    assert sum(scores.steps[1].states.values()) == done
    assert len({one.case for one in Run.open(run).predictions()}) >= done


def test_a_partial_copy_scores_as_the_whole_does_on_these_cases(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "copy")
    lines = (copy / "predictions.jsonl").read_bytes().splitlines(keepends=True)[:10]
    replace_predictions(copy, b"".join(lines))
    assert score_run(copy).cases == score_run(whole).cases[:10]


def test_a_run_without_letters_is_refused_whole_or_cut_not_compared_at_0_percent(make_run, whole, capfdbinary):
    written = make_run(
        "written", model="baseline/retrieval", task="discussion", condition=Condition(show_options=False)
    )
    for cut in (0, 3):
        lines = (written / "predictions.jsonl").read_bytes().splitlines(keepends=True)
        replace_predictions(written, b"".join(lines[: len(lines) - cut]))
        for flags in ((), ("--sequential",)):
            for order in ((written, whole), (whole, written)):
                code, out, err = run_captured(capfdbinary, "compare", *order, *flags)
                assert (code, "written has no answers by letter" in err, out) == (2, True, ""), (cut, flags, out)
