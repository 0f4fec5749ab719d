"""A run is stopped when it is known, and says which claim is meant and what was saved."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.cli.results.compare import show_stopping
from medthink.core.errors import UsageError
from medthink.scoring.inputs import load_run
from medthink.scoring.sequential import StopWhenKnown, case_rights, sequential_order
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction


@pytest.fixture
def cases(bench):
    return {case.id: case for case in Benchmark.open(bench)["test"]}


def predict(case, is_right, sample=0):
    letter = case.reference.answer if is_right else next(x for x in case.question.options if x != case.reference.answer)
    return Prediction(case=case.id, split="test", sample=sample, state="ok", prediction=letter)


def test_the_order_depends_on_the_benchmark_alone(cases):
    order = sequential_order(cases, "f")
    assert order == sequential_order(reversed(list(cases)), "f") != sequential_order(cases, "g")
    assert sorted(order) == sorted(cases) != order


def test_only_the_unbroken_beginning_of_the_order_counts(cases):
    rule = StopWhenKnown(cases, "f", half_width=0.4)
    first, *rest = [case.id for case in rule.arrange(cases.values())]
    assert [first, *rest] == sequential_order(cases, "f")
    for case in rest:
        rule.see(predict(cases[case], True))
    assert (rule.is_known, rule.statement("r", None).seen) == (False, 0)
    rule.see(predict(cases[first], True))
    said = rule.statement("r", 0.5)
    assert said.seen == 40 and rule.known_after < 20
    # Cases that were answered although they were not needed (calls in flight) are not saved.
    assert (said.saved_cases, said.saved_usd) == (0, 0)
    assert not said.is_difference


def test_what_a_stopped_run_saved_is_what_it_did_not_ask(cases):
    rule = StopWhenKnown(cases, "f", half_width=0.4)
    for case in rule.arrange(cases.values()):
        if rule.is_known:
            break
        rule.see(predict(case, True))
    said = rule.statement("r", 0.5)
    assert (said.saved_cases, said.saved_usd) == (40 - rule.known_after, (40 - rule.known_after) / 2)


def test_an_accuracy_is_shown_without_a_sign_and_a_difference_with_one(cases, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for goal, shown in (({"half_width": 0.4}, "100.0 to 100.0"), ({"rival": dict.fromkeys(cases, 0.0)}, "+100.0 to")):
        rule = StopWhenKnown(cases, "f", **goal)
        for case in rule.arrange(cases.values()):
            rule.see(predict(case, True))
        show_stopping([rule.statement("r", None)])
        assert f" {shown}" in capsys.readouterr().out


def test_a_run_may_be_watched_against_another(cases):
    for is_right, verdict in ((True, "the first is ahead"), (False, "the second is ahead")):
        rule = StopWhenKnown(cases, "f", rival=dict.fromkeys(cases, float(not is_right)))
        for case in rule.arrange(cases.values()):
            rule.see(predict(case, is_right))
        assert rule.known_after < 20 and rule.statement("r", None).verdict == verdict


def test_a_failed_case_is_wrong_and_not_skipped(cases):
    rule = StopWhenKnown(cases, "f", half_width=0.4)
    for case in rule.arrange(cases.values()):
        rule.see(Prediction(case=case.id, split="test", sample=0, state="failed"))
    assert (rule.statement("r", None).seen, rule.statement("r", None).high) == (40, 0.0)


@pytest.mark.parametrize(
    "goal",
    [{}, {"half_width": 0.1, "rival": {}}, {"rival": {1: 1.0}}, {"half_width": 0.1, "claim": "such", "samples": 2}],
)
def test_what_cannot_be_watched_is_refused(cases, goal):
    with pytest.raises(UsageError):
        StopWhenKnown(cases, "f", **goal)


def test_a_run_stops_early_and_is_continued(bench, tmp_path, capsys):
    command = ["run", str(bench), "--model", "baseline/random", "--out", str(tmp_path / "r"), "--concurrency", "1"]
    assert run_command([*command, "--stop-when", "30", "--json"]) == 0
    made = msgspec.json.decode(capsys.readouterr().out)
    known = made["known"]
    assert known["claim"] == "these" and known["known_after"] < 30
    assert known["seen"] >= known["known_after"]
    assert made["progress"]["is_complete"] is False
    assert sum(made["progress"]["states"].values()) < 40
    assert run_command(["compare", "--sequential", str(tmp_path / "r")]) == 0
    assert "these 40 cases" in " ".join(capsys.readouterr().out.split())
    assert run_command(command) == 0
    assert run_command(["score", str(tmp_path / "r"), "--json"]) == 0


def test_the_command_watches_finished_runs_under_both_claims(make_run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    runs = [make_run(name, model=f"baseline/{name}", condition=Condition()) for name in ("random", "longest")]
    assert run_command(["compare", "--sequential", *map(str, runs)]) == 0
    shown = capsys.readouterr().out
    assert "random − longest" in shown and "40 of 40" in shown
    assert "these: these 40 cases" in shown and "such: all such cases" in shown


def test_a_goal_that_is_no_goal_is_refused(bench, tmp_path, capsys):
    command = ["run", str(bench), "--model", "baseline/random", "--out", str(tmp_path / "r"), "--stop-when"]
    assert run_command([*command, "70"]) == 2
    assert run_command([*command, str(tmp_path / "nowhere")]) == 2
    assert "no such run or file" in capsys.readouterr().err


def test_the_cases_are_viewed_over_the_runs(make_run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    runs = [make_run(name, model=f"baseline/{name}") for name in ("random", "longest", "majority")]
    assert run_command(["compare", "--by-case", *map(str, runs)]) == 0
    shown = capsys.readouterr().out
    assert "Hardest of 40 cases, 3 models" in shown and "needs at least six models" in shown
    assert run_command(["compare", "--by-case", *map(str, runs), "--json"]) == 0
    view = msgspec.json.decode(capsys.readouterr().out)
    assert len(view["table"]["cases"]) == 40 and view["suspects"] is None
    assert run_command(["compare", "--by-case", *map(str, runs[:2])]) == 2


def test_a_reading_list_of_files_says_that_their_vendors_are_not_known(bench, tmp_path, capsys):
    rows = [msgspec.json.decode(line) for line in (bench / "test.jsonl").read_bytes().splitlines()]
    files = []
    for number in range(6):
        lines = [
            {"title": row["title"], "prediction": "ABCDE"[(place + (place < number)) % 5]}
            for place, row in enumerate(rows)
        ]
        files.append(tmp_path / f"m{number}.jsonl")
        files[-1].write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    assert run_command(["compare", "--by-case", *map(str, files), "--data", str(bench)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Possibly wrong keys" in shown and "Files do not say which vendor" in shown


def test_a_run_without_letters_is_no_rival_to_watch_against(bench, make_run, tmp_path, capsys):
    written = make_run("d", model="baseline/retrieval", task="discussion", condition=Condition(show_options=False))
    command = ["run", str(bench), "--model", "baseline/random", "--out", str(tmp_path / "r")]
    assert run_command([*command, "--stop-when", str(written)]) == 2
    assert "no answers by letter" in capsys.readouterr().err


@pytest.mark.parametrize("claim", ["these", "such"])
def test_with_several_samples_a_run_that_is_less_accurate_is_never_called_better(claim):
    # Ahead by a little on most cases, far behind on the rest: −0.18 on average.
    cases = {k: SimpleNamespace(id=k, reference=SimpleNamespace(answer="A")) for k in range(300)}
    for seed in range(5):
        draw = np.random.default_rng(seed)
        rule = StopWhenKnown(cases, "f", samples=5, claim=claim, rival={k: 0.8 for k in cases})
        for case in rule.arrange(cases.values()):
            right = 5 if draw.random() < 0.62 else 0
            for sample in range(5):
                letter = "A" if sample < right else "B"
                rule.see(Prediction(case=case.id, split="test", sample=sample, state="ok", prediction=letter))
        said = rule.statement("r", None)
        assert said.verdict == "the second is ahead"
        assert said.low < said.high < 0 or claim == "these"


def test_samples_numbered_from_1_count(make_run):
    run = make_run("run", condition=Condition(samples=3))
    material = load_run(run)
    later = material._replace(predictions=[replace(one, sample=one.sample + 1) for one in material.predictions])
    assert case_rights(later) == case_rights(material) != {}
