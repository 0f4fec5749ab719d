"""The short rows of a run say what its predictions say."""

import os

import pytest

from ledger_rows import alter
from made_runs import make_run
from medthink.core.errors import DataError
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.runs.manifest import read_manifest
from medthink.runs.run import PREDICTIONS_FILE, Run, is_settled, read_rows, stamp, write_results
from small_benchmark import write_benchmark


@pytest.fixture
def made(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=6)
    return make_run(tmp_path / "run", bench, silent=2, samples=2, words="long " * 200)


def test_the_rows_say_what_the_predictions_say(made):
    rows = read_rows(made)
    predictions = list(Run.open(made).predictions())
    assert [(row.case, row.sample, row.state, row.prediction) for row in rows] == [
        (one.case, one.sample, one.state, one.prediction) for one in predictions
    ]
    assert all(row.cost_usd == one.cost_usd for row, one in zip(rows, predictions, strict=True))
    assert rows[0].state == "unparsed" and rows[0].detail.startswith("no answer stated") and len(rows[0].detail) == 200


def test_a_killed_run_is_read_from_its_ledger(made):
    before = read_rows(made)
    (made / PREDICTIONS_FILE).unlink()
    assert not is_settled(made) and read_rows(made) == before


def test_a_run_whose_ledger_knows_more_than_its_file_is_read_from_the_ledger(made):
    """Whatever lies beside it: a log that was emptied by a clean close, or none."""
    whole = read_rows(made)
    file, manifest = made / PREDICTIONS_FILE, read_manifest(made)
    assert is_settled(made)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:4]))
    alter(made / "ledger.sqlite", "UPDATE predictions SET state = state")
    assert not is_settled(made) and len(read_rows(made)) == len(list(Run.open(made).predictions())) == len(whole) == 12
    ledger = Ledger(made / "ledger.sqlite")
    write_results(made, manifest, ledger, 12)
    ledger.close()
    assert is_settled(made) and read_rows(made) == whole


def test_a_run_without_a_ledger_yet_has_no_rows(tmp_path):
    assert read_rows(tmp_path) == ()


def test_a_line_that_is_no_prediction_is_named(made):
    (made / PREDICTIONS_FILE).write_text('{"case": "one"}\n')
    with pytest.raises(DataError, match=r"predictions\.jsonl:1: not a prediction"):
        read_rows(made)


def test_the_stamp_changes_with_the_ledger(made):
    before = stamp(made)
    assert stamp(made) == before
    Ledger(made / "ledger.sqlite").close()
    assert stamp(made) != before


def test_asking_who_works_on_a_run_does_not_refuse_a_run_that_starts(made, monkeypatch):
    import fcntl

    (made / ".lock").touch()
    handle = os.open(made / ".lock", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    monkeypatch.setattr("medthink.runs.ledger.lock.time.sleep", lambda _: fcntl.flock(handle, fcntl.LOCK_UN))
    with lock_run(made):
        pass
    os.close(handle)
