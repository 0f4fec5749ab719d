"""Shortcuts raise the alarm, clean phantoms do not, and a run's gain is over the strongest rival."""

import subprocess
import sys

import msgspec
import pytest
from scipy.stats import chisquare

from medthink.cases.benchmark import Benchmark
from medthink.cases.synth.writer import write_benchmark
from medthink.cli.door import enter
from medthink.core.errors import UsageError
from medthink.runs.manifest import Selection
from medthink.runs.session import Order, carry_out
from medthink.scoring.score import score_run
from medthink.validity.audit import audit_run
from medthink.validity.guesses import Guesses, gather, guess_by_inputs, guess_longest
from medthink.validity.probe import probe_benchmark
from medthink.workflow.condition import Condition


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    out = tmp_path_factory.mktemp("validity") / "clean"
    write_benchmark(out, cases=160, seed=5)
    return out


@pytest.fixture(scope="module")
def leaky(tmp_path_factory):
    out = tmp_path_factory.mktemp("validity") / "leaky"
    write_benchmark(out, cases=160, seed=5, shortcut=True)
    return out


def run(bench, out, **changes):
    carry_out(Order(**({"benchmark": bench, "model": "baseline/random", "out": out} | changes)))
    return score_run(out)


def test_clean_phantoms_raise_no_alarm(clean):
    found = probe_benchmark(Benchmark.open(clean), "test")
    assert found.alarms == ()
    assert {score.name: score.verdict for score in found.scores}["guesser:images"] == "for information"
    assert sum(found.letters.values()) == found.n_cases == 40
    assert found.problems["answer-in-history"] == 0


def test_planted_shortcuts_raise_the_alarm(leaky):
    found = probe_benchmark(Benchmark.open(leaky), "test")
    assert {"longest option", "guesser:options"} <= {score.name for score in found.alarms}
    assert found.length_gap.characters.low > 0
    assert found.problems["answer-in-history"] > 0


def test_without_a_train_split_guessers_are_cross_validated(leaky):
    material = gather(Benchmark.open(leaky / "test.jsonl"), "test")
    guesses = guess_by_inputs(material, "options")
    assert guesses.source == "cross-validated"
    assert guesses.letters.keys() == {case.id for case in material.cases}


def test_a_handful_of_cases_is_too_few(clean):
    benchmark = Benchmark.open(clean).filter(lambda case: case.id < 20)
    with pytest.raises(UsageError, match="too few"):
        gather(benchmark, "test")


def test_the_gain_is_over_the_strongest_rival_on_the_same_cases(clean, tmp_path):
    scores = run(clean, tmp_path / "run")
    cases = [case for case in Benchmark.open(clean)["test"]]
    perfect = Guesses("oracle", "rule", {case.id: case.reference.answer for case in cases})
    audit = audit_run(scores, [guess_longest(cases), perfect], [])
    assert audit.strongest_rival == "oracle"
    rival = {one.name: one for one in audit.rivals}["oracle"]
    assert rival.accuracy.value == 1.0
    assert audit.diagnostic_gain.value == pytest.approx(scores.answers.accuracy.value - 1.0)
    assert rival.on_misses.n == 0


def test_accuracy_where_a_rival_is_wrong_is_counted_on_those_cases(clean, tmp_path):
    scores = run(clean, tmp_path / "run")
    wrong = {case.case for case in scores.cases[:15]}
    letters = {case.case: "?" if case.case in wrong else case.gold for case in scores.cases}
    (rival,) = audit_run(scores, [Guesses("g", "rule", letters)], []).rivals
    assert rival.on_misses.n == 15
    assert rival.on_misses.value == pytest.approx(sum(c.right for c in scores.cases if c.case in wrong) / 15)


def test_own_blind_runs_are_rivals_and_changed_forms_are_consistency(clean, tmp_path):
    base = run(clean, tmp_path / "base", model="baseline/longest")
    variants = {
        "blind": Condition(image_share=0.0),
        "swapped": Condition(swap_images=True),
        "options": Condition(image_share=0.0, show_history=False),
        "rotated": Condition(option_order=2),
        "reversed": Condition(image_order="reversed"),
        "both": Condition(image_order="reversed", option_order=1),
    }
    others = [run(clean, tmp_path / n, model="baseline/longest", condition=c) for n, c in variants.items()]
    others.append(run(clean, tmp_path / "stranger", model="baseline/random"))
    audit = audit_run(base, [guess_longest(list(Benchmark.open(clean)["test"]))], [base, *others])
    assert [rival.name for rival in audit.rivals[1:]] == [
        "own run without images",
        "own run with another case's images",
        "own run, options only",
    ]
    assert [one.what for one in audit.consistency] == ["option_order 2", "image_order reversed"]
    assert audit.consistency[1].same_answer.value == 1.0


def test_a_reader_that_always_says_the_same_letter_shows_a_bias_of_place(clean, tmp_path):
    scores = run(clean, tmp_path / "run", model="baseline/majority")
    audit = audit_run(scores, [guess_longest(list(Benchmark.open(clean)["test"]))], [])
    assert audit.place_bias.p_value < 1e-6
    assert len(audit.place_bias.chosen) == 1


def test_the_samples_of_a_case_are_one_witness_of_a_bias_of_place(clean, tmp_path):
    scores = run(clean, tmp_path / "run")
    chosen = {"A": 14, "B": 4, "C": 8, "D": 7, "E": 7}
    made = [
        msgspec.structs.replace(
            scores,
            answers=msgspec.structs.replace(
                scores.answers, chosen={letter: k * count for letter, count in chosen.items()}, n_predictions=40 * k
            ),
        )
        for k in (1, 5)
    ]
    guesses = [guess_longest(list(Benchmark.open(clean)["test"]))]
    once, often = (audit_run(one, guesses, []).place_bias.p_value for one in made)
    assert once == pytest.approx(chisquare(list(chosen.values())).pvalue)
    assert often == pytest.approx(once)


def test_a_run_on_another_split_is_not_set_against_guesses_about_this_one(clean, tmp_path, capsys):
    run(clean, tmp_path / "run", selection=Selection(split="train"))
    assert enter(["probe", str(clean), str(tmp_path / "run")]) == 2
    assert "is about the train split" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "code"), [("clean", 0), ("leaky", 1)])
def test_the_command_says_it_by_its_exit_code(kind, code, request, tmp_path):
    bench = request.getfixturevalue(kind)
    shown = subprocess.run(
        [sys.executable, "-m", "medthink", "probe", str(bench), "--json"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == code, shown.stderr
    found = msgspec.json.decode(shown.stdout)
    assert found["probe"]["n_cases"] == 40
