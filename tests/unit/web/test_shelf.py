"""The shelf knows every run below its folders, as each is now."""

import asyncio
import json
import shutil
import sqlite3

import pytest

from made_runs import make_run
from medthink.audit.rivals import rival_guesses
from medthink.audit.runs import audit_run
from medthink.cases.benchmark import Benchmark
from medthink.runs.ledger.ledger import Call, Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.scoring.inputs import load_run
from medthink.scoring.score import score_letters, score_run
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.runs.accuracy import RunAccuracies
from medthink.web.runs.index import RunIndex, find_runs
from small_benchmark import write_benchmark
from web_pages import make_runs


@pytest.fixture
def runs(tmp_path):
    return make_runs(tmp_path)


@pytest.fixture
def shelf(runs, monkeypatch):
    monkeypatch.setattr("medthink.web.runs.index._LOOK_AGAIN_S", 0.0)
    return RunIndex([runs], BenchmarkCache())


def run_of(shelf, name):
    return next(run for run in shelf.runs() if run.name == name)


def test_runs_are_named_by_what_tells_their_paths_apart(runs):
    assert list(find_runs([runs])) == ["blind", "other", "seeing"]
    assert list(find_runs([runs.parent])) == ["blind", "other", "seeing"]
    assert list(find_runs([runs / "other"])) == ["other"]
    shutil.copytree(runs / "other", runs / "more/other")
    assert list(find_runs([runs, runs / "other"])) == ["blind", "more/other", "other", "seeing"]


def test_hidden_folders_and_folders_inside_runs_are_not_looked_into(runs):
    shutil.copytree(runs / "other", runs / ".trash/other")
    shutil.copytree(runs / "other", runs / "seeing/inside")
    assert list(find_runs([runs])) == ["blind", "other", "seeing"]


def test_names_in_addresses_differ_even_where_the_letters_do_not(runs):
    shutil.copytree(runs / "other", runs / "öther")
    shutil.copytree(runs / "other", runs / "ather")
    slugs = {run.slug for run in RunIndex([runs], BenchmarkCache()).runs()}
    assert len(slugs) == 5 and all(slug.replace("-", "").isalnum() and slug.isascii() for slug in slugs)


def test_a_finished_run_a_killed_one_and_one_under_way(shelf, runs):
    assert run_of(shelf, "other").activity == "finished"
    with lock_run(runs / "other"):
        assert run_of(shelf, "other").activity == "running"
    forget_session(runs / "other")
    killed = run_of(shelf, "other")
    assert (killed.activity, len(killed.rows), killed.total) == ("unfinished", 12, 12)


def test_a_killed_run_costs_what_came_back_and_at_most_what_did_not(shelf, runs):
    """A call was sent when it was killed: nobody knows before it is resumed whether that one is billed."""
    assert not run_of(shelf, "other").is_least_cost
    forget_session(runs / "other")
    assert (run_of(shelf, "other").cost_usd, run_of(shelf, "other").is_least_cost) == (pytest.approx(0.012), False)
    asyncio.run(send_one(runs / "other"))
    assert (run_of(shelf, "other").cost_usd, run_of(shelf, "other").is_least_cost) == (pytest.approx(0.512), True)
    # While somebody waits for it, it is merely under way.
    with lock_run(runs / "other"):
        assert not run_of(shelf, "other").is_least_cost


def forget_session(run):
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"progress": None}))
    (run / "predictions.jsonl").unlink()


async def send_one(run):
    """A call that was under way when its process died, which had no time to write down that it stopped."""
    ledger = Ledger(run / "ledger.sqlite")
    await ledger.intend(Call("k", "k", 100, "answer", b"{}"), worst_usd=0.5)
    ledger.close()
    with sqlite3.connect(run / "ledger.sqlite") as connection:
        connection.execute("UPDATE calls SET state = 'open', error_kind = NULL, error_detail = NULL WHERE key = 'k'")
    connection.close()


def test_a_run_is_read_again_only_when_it_has_changed(shelf, runs):
    before = run_of(shelf, "other")
    assert run_of(shelf, "other") is before
    (runs / "other/predictions.jsonl").touch()
    assert run_of(shelf, "other") is not before


def test_a_new_run_appears_and_one_that_is_gone_does_not_stay(shelf, runs):
    assert len(shelf.runs()) == 3
    make_run(runs / "new", runs.parent / "bench", model="server/new")
    shutil.rmtree(runs / "other")
    assert [run.name for run in shelf.runs()] == ["blind", "new", "seeing"]


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(shelf, runs):
    (runs / "other/run.json").write_text("{}")
    assert [run.name for run in shelf.runs()] == ["blind", "seeing"]
    (broken,) = shelf.broken()
    assert broken.name == "other" and "not a manifest" in broken.problem


def test_a_prediction_about_a_case_of_no_benchmark_is_refused(shelf, runs):
    path = runs / "other/predictions.jsonl"
    path.write_text(path.read_text().replace('"case":100', '"case":999'))
    assert "case 999" in shelf.broken()[0].problem


def test_without_its_benchmark_a_run_is_shown_and_nothing_is_right_or_wrong(runs):
    shutil.move(runs.parent / "bench", runs.parent / "moved")
    run = run_of(RunIndex([runs], BenchmarkCache()), "other")
    assert run.rights == {} and "--data" in run.doubt and len(run.rows) == 12
    assert run_of(RunIndex([runs], BenchmarkCache(runs.parent / "moved")), "other").rights


def test_another_benchmark_than_the_runs_is_refused(runs, tmp_path):
    other = write_benchmark(tmp_path / "wrong", cases=5)
    run = run_of(RunIndex([runs], BenchmarkCache(other)), "other")
    assert run.bench is None and "is not the benchmark" in run.doubt


def test_the_accuracy_is_that_of_score(shelf, runs):
    found = RunAccuracies().of_all(shelf.runs())
    for run in shelf.runs():
        scored = score_run(run.path).answers.accuracy
        mine = found[run.slug].accuracy
        assert (mine.value, mine.low, mine.high) == pytest.approx((scored.value, scored.low, scored.high))


def test_rival_and_gain_are_those_of_an_audit_and_come_after_the_list(shelf, runs):
    standings = RunAccuracies()
    listed = shelf.runs()
    assert all(one.gain is None for one in standings.of_all(listed).values())
    standings.wait()
    found = standings.of_all(listed)
    guesses = rival_guesses(Benchmark.open(runs.parent / "bench"), "test")
    scored = {run.slug: score_letters(load_run(run.path)) for run in listed}
    for run in listed:
        audit = audit_run(scored[run.slug], guesses, list(scored.values()))
        mine = found[run.slug]
        assert (mine.rival, mine.gain) == (audit.strongest_rival, audit.diagnostic_gain), run.name


def test_standings_are_worked_out_once(shelf, monkeypatch):
    standings = RunAccuracies()
    standings.of_all(shelf.runs())
    standings.wait()
    first = standings.of_all(shelf.runs())
    monkeypatch.setattr("medthink.web.runs.accuracy.find_accuracy", lambda *_: pytest.fail("worked out again"))
    assert standings.of_all(shelf.runs()) == first
