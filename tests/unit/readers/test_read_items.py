"""The items of a readers' table: cases that divide, and labels that stand alone, with the false alarms to expect."""

import json

import numpy as np
import pytest

from judge_server import JudgeServer, judge_well
from judged_run import make_run
from medthink.cli.command import run_command
from medthink.core.tables import write_table
from medthink.judge.judged import cut_units
from medthink.readers.readings import readable_items
from medthink.stats import lone_labels


def draw(rng, *, raters, items=200, right=0.9, misleading=0.0):
    truth = rng.random(items) < 0.25
    errs = np.where(rng.random(items) < misleading, 0.5, 1 - right)
    return truth, np.array([np.where(rng.random(items) < errs, ~truth, truth) for _ in range(raters)], dtype=float)


@pytest.mark.parametrize(("raters", "right"), [(3, 0.9), (3, 0.8), (4, 0.9)])
def test_the_share_of_false_alarms_is_the_one_expected_where_raters_err_independently(raters, right):
    rng = np.random.default_rng(1)
    expected, actual = [], []
    for _ in range(25):
        truth, labels = draw(rng, raters=raters, right=right)
        for one in lone_labels(labels):
            expected.append(1 - one.doubt)
            actual.append(labels[one.rater, one.item] == truth[one.item])
    assert np.mean(expected) == pytest.approx(np.mean(actual), abs=0.03)


def test_items_that_mislead_everybody_make_more_false_alarms_than_expected():
    rng = np.random.default_rng(2)
    gaps = []
    for _ in range(25):
        truth, labels = draw(rng, raters=3, misleading=0.2)
        found = lone_labels(labels)
        gaps.append(np.mean([labels[one.rater, one.item] == truth[one.item] for one in found]))
        gaps[-1] -= np.mean([1 - one.doubt for one in found])
    assert 0.05 < np.mean(gaps) < 0.15


def test_two_raters_say_nothing_of_who_erred_and_gaps_are_no_labels():
    assert lone_labels([[1, 0, 1], [0, 1, 1]]) == []
    (one,) = lone_labels([[1, 0, np.nan], [1, 0, 1], [0, 0, 1]])
    assert (one.rater, one.item, one.others) == (2, 0, 2)


@pytest.fixture
def read(tmp_path):
    """A run judged by a server, read by two readers; ben slips on one unit."""
    run = make_run(tmp_path, cases=4)
    with JudgeServer(judge_well) as server:
        words = ["--judge", "server/a", "--base-url", server.url, "--segmenter", "sentences"]
        assert run_command(["judge", str(run), *words]) == 0
    units = list(readable_items(cut_units(run)).values())
    slip = units[0].id
    rows = [
        {"reader": reader, "unit": one.id, "factual": "contradicted" if is_wrong else "supported"}
        for reader in ("anna", "ben")
        for one in units
        for is_wrong in [("WRONG" in one.text) != (reader == "ben" and one.id == slip)]
    ]
    write_table(tmp_path / "t.jsonl", ("reader", "unit", "factual"), rows)
    return run, tmp_path / "t.jsonl", units[0]


def test_the_label_that_stands_alone_is_listed_and_its_case_divides_most(read, capsys):
    run, table, slip = read
    capsys.readouterr()
    assert run_command(["agreement", str(run), str(table), "--by-case", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["aspect"] == "support" and len(found["raters"]) == 3
    (alone,) = found["alone"]
    assert (alone["reader"], alone["unit"], alone["others"]) == ("ben", slip.id, 2)
    assert alone["doubt"] > 0.5 and found["false_share"] == pytest.approx(1 - alone["doubt"])
    assert found["cases"][0]["case"] == slip.case
    assert found["cases"][0]["differ"]["value"] == pytest.approx(2 / 9)


def test_it_is_printed_as_a_reading_list(read, capsys):
    run, table, _ = read
    capsys.readouterr()
    assert run_command(["agreement", str(run), str(table), "--by-case"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Possible errors: one reader against all others" in shown
    assert "A reading list, not a finding" in shown
    assert run_command(["agreement", str(run), "--by-case"]) == 0
    assert "No reader's label is contradicted" in capsys.readouterr().out
