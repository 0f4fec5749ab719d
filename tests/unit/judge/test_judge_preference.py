"""Two runs' discussions side by side: both orders, flips are ties, ranks are ranges."""

import json
import re

import msgspec
import numpy as np
import pytest
from scipy.stats import binom

from judge_server import JudgeServer, judge_well, read_request, request_text
from judged_run import make_run, rewrite
from medthink.cli.command import run_command
from medthink.core.errors import UsageError
from medthink.judge.judged import load_judged, score_judged
from medthink.judge.kinds.preference import is_flip
from medthink.judge.session import JudgeSpec, judge_run
from medthink.report.judged import judged_markup, ranks_tables, score_judgements
from medthink.report.runs import group_entries, load_entries
from medthink.runs.run import Run
from medthink.stats import Game, Undefined, bradley_terry

GOOD = {"background": "It is a tumour.", "outcome": "It was removed."}
BAD = {"background": "It is WRONG.", "outcome": "It was removed."}
WORST = {"background": "It is WRONG.", "outcome": "It is WRONG."}


@pytest.fixture
def runs(tmp_path):
    """Three runs of one benchmark: the first is better than the second, and that than the third."""
    found = []
    for number, texts in enumerate((GOOD, BAD, WORST)):
        run = make_run(tmp_path, cases=4)
        place = run.rename(tmp_path / f"run{number}")
        rewrite(place, [{"discussion": texts}] * 4)
        manifest = json.loads((place / "run.json").read_text())
        (place / "run.json").write_text(json.dumps(manifest | {"task": "discussion", "model": f"server/m{number}"}))
        found.append(place)
    return found


def judge(run, *others, answer=judge_well, **changes):
    with JudgeServer(answer) as server:
        judge_run(JudgeSpec(run=run, judges=("server/j",), base_urls=(server.url,), against=others, **changes))
        return server.bodies


def scores_of(run):
    (scores,) = score_judged(load_judged(run, Run.open(run).cases()), {})["preference"]
    return scores


def test_every_pair_is_asked_in_both_orders_and_names_nobody(runs):
    bodies = judge(runs[0], runs[1])
    assert len(bodies) == 8
    firsts = [read_request(request_text(body))[1]["author"]["text"]["first"] for body in bodies]
    assert sorted("WRONG" in text for text in firsts) == [False] * 4 + [True] * 4
    assert not [body for body in bodies if "server/m" in json.dumps(body) or "run1" in json.dumps(body)]
    scores = scores_of(runs[0])
    (contest,) = scores.contests.values()
    assert contest.against.startswith("server/m1 · ")
    assert list(contest.scores.values()) == [1.0] * 4 and contest.flips == 0
    assert (scores.won.value, scores.consistent.value) == (1.0, 1.0)


def test_a_judge_that_always_prefers_the_first_has_no_preference(runs):
    def first(nonce, data, outside):
        verdict = {"id": data["units"][0]["id"], "reason": "so", "preferred": "first"}
        return json.dumps({"call": nonce, "verdicts": [verdict]})

    judge(runs[0], runs[1], answer=first)
    scores = scores_of(runs[0])
    (contest,) = scores.contests.values()
    assert (scores.won.value, scores.consistent.value, contest.flips) == (0.5, 0.0, 4)


def test_a_tie_in_both_orders_is_constant_and_a_tie_in_one_is_a_flip():
    assert not is_flip("tie", "tie") and not is_flip("first", "second") and not is_flip("second", "first")
    assert is_flip("tie", "first") and is_flip("first", "first")


def test_a_pair_judged_in_one_order_only_is_left_out(runs):
    judge(runs[0], runs[1], max_calls=3)
    assert sum(len(one.scores) for one in scores_of(runs[0]).contests.values()) in (0, 1)


def test_other_benchmarks_the_same_run_and_one_run_alone_are_refused(runs, tmp_path):
    with pytest.raises(UsageError, match="a preference needs two runs"):
        judge(runs[0], what=("preference",))
    with pytest.raises(UsageError, match="a preference needs two runs"):
        judge(runs[0], runs[1], what=("discussion",))
    with pytest.raises(UsageError, match="is the same run"):
        judge(runs[0], runs[0])
    with pytest.raises(UsageError, match="would judge itself"):
        judge_run(JudgeSpec(run=runs[0], judges=("server/m1",), against=(runs[1],)))


def test_the_report_ranks_runs_by_preference_with_ranges(runs):
    judge(runs[0], runs[1], runs[2])
    judge(runs[1], runs[2])
    entries = group_entries(load_entries(runs))[0].entries
    markup = "".join(judged_markup(score_judgements(entries)))
    table = re.search(r'aria-label="Preference ranks, judged"[^>]*>(<table>.*?</table>)', markup, re.DOTALL)[1]
    # Four cases are no proof, however they go.
    assert [re.sub(r"<[^>]+>", "|", row).split("||")[2] for row in table.split("<tr>")[2:]] == ["1–3"] * 3


def test_a_pair_judged_from_both_sides_is_one_game(runs):
    judge(runs[0], runs[1])
    once = ranks_tables(score_judgements(load_entries(runs)))["Preference ranks"]
    judge(runs[1], runs[0])
    both = ranks_tables(score_judgements(load_entries(runs)))["Preference ranks"]
    assert [row[2:] for row in once.rows] == [row[2:] for row in both.rows]
    assert [row[-1] for row in both.rows] == ["4", "4"]


def test_judges_of_one_label_are_ranked_apart(runs):
    judge(runs[0], runs[1])
    (run, *_) = score_judgements(load_entries(runs))
    (scores,) = (one for one in run.scores["preference"] if one.contests)
    other = msgspec.structs.replace(scores, seat=msgspec.structs.replace(scores.seat, prompt="0" * 64))
    kinds = run.scores.kinds | {"preference": (scores, other)}
    (table,) = ranks_tables([run._replace(scores=msgspec.structs.replace(run.scores, kinds=kinds))]).values()
    assert len({row[0] for row in table.rows}) == 2
    assert [row[-1] for row in table.rows] == ["4"] * 4


def test_runs_that_no_pair_joins_are_not_ranked_together(runs, tmp_path):
    others = [make_run(tmp_path, cases=4).rename(tmp_path / f"other{number}") for number in range(2)]
    for number, place in enumerate(others):
        rewrite(place, [{"discussion": (GOOD, BAD)[number]}] * 4)
        manifest = json.loads((place / "run.json").read_text())
        (place / "run.json").write_text(json.dumps(manifest | {"task": "discussion", "model": f"server/o{number}"}))
    judge(runs[0], runs[1])
    judge(others[0], others[1])
    tables = ranks_tables(score_judgements(load_entries([*runs, *others])))
    assert [len(table.rows) for table in tables.values()] == [2, 2]
    assert list(tables)[1].startswith("Preference ranks, not compared with those above")


def test_the_embedded_judge_compares_findings(runs, capsys):
    words = ["judge", str(runs[0]), "--judge", "baseline/rules", "--against", str(runs[1])]
    assert run_command(words) == 0
    assert "Preferences · baseline/rules" in capsys.readouterr().out


def test_strengths_are_those_of_the_model():
    # With two contestants the strength is the share won, half a tie added.
    games = [Game(0, 1, float(case < 15), case) for case in range(20)]
    ((first, second),) = bradley_terry(games, rng=np.random.default_rng(1))
    odds = first.beats_average.value / (1 - first.beats_average.value)
    assert odds**2 == pytest.approx(15.5 / 5.5)
    assert first.beats_average.low < first.beats_average.value < first.beats_average.high
    assert second.beats_average.value == pytest.approx(1 - first.beats_average.value)
    assert (first.rank, second.worst_rank) == (1, 2)


def test_one_that_won_everything_is_finite_and_equals_share_their_ranks():
    games = [Game(a, b, 1.0 if a == 0 else 0.5, case) for case in range(30) for a, b in ((0, 1), (0, 2), (1, 2))]
    ((best, *others),) = bradley_terry(games, rng=np.random.default_rng(1))
    assert (best.rank, best.worst_rank) == (1, 1) and best.beats_average.value < 1
    assert {(one.rank, one.worst_rank) for one in others} == {(2, 3)}
    assert bradley_terry([], rng=np.random.default_rng(1)) == []


def test_two_cases_are_no_proof_and_leave_a_wide_interval():
    games = [Game(a, b, 1.0, case) for case in range(2) for a, b in ((0, 1), (0, 2), (1, 2))]
    (part,) = bradley_terry(games, rng=np.random.default_rng(1))
    assert [(one.rank, one.worst_rank) for one in part] == [(1, 3)] * 3
    assert all(one.beats_average.high - one.beats_average.low > 0.5 for one in part)
    one_case = bradley_terry(games[:3], rng=np.random.default_rng(1))[0][0]
    assert isinstance(one_case.beats_average, Undefined)


@pytest.mark.parametrize(("runs", "cases"), [(2, 3), (2, 8), (5, 3), (10, 30)])
def test_equal_runs_seldom_stand_in_separate_ranges(runs, cases):
    rng, false, missed, repeats = np.random.default_rng(2), 0, 0, 150
    for _ in range(repeats):
        quality = rng.gumbel(size=(cases, runs))
        games = [
            Game(a, b, float(row[a] > row[b]), case)
            for case, row in enumerate(quality)
            for a in range(runs)
            for b in range(a)
        ]
        (part,) = bradley_terry(games, rng=rng, flips=999)
        false += any((one.rank, one.worst_rank) != (1, runs) for one in part)
        missed += not part[0].beats_average.low <= 0.5 <= part[0].beats_average.high
    assert false <= binom.isf(1e-4, repeats, 0.05)
    # The strongest of equals is the extreme one: it may miss as often as any of them.
    assert missed <= binom.isf(1e-4, repeats, min(1, 0.05 * runs))
