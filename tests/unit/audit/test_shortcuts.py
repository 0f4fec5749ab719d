"""Shortcuts raise the alarm, clean phantoms do not, and a run's gain is over the strongest rival."""

import json
import shutil
import subprocess
import sys
from collections import Counter

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binom, binomtest, chisquare

import small_benchmark
from made_runs import make_run
from medthink.audit import benchmark as audited
from medthink.audit import rivals
from medthink.audit.benchmark import audit_benchmark
from medthink.audit.rivals import (
    Guessable,
    Guesses,
    guess_by_inputs,
    guess_longest,
    guess_majority,
    guessable_cases,
    look_alike_groups,
    rival_guesses,
)
from medthink.audit.runs import audit_run
from medthink.baselines.guesser import _cut, hits_by_chance
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import UsageError
from medthink.core.jsonio import write_jsonl
from medthink.phantoms.writer import make_phantom_row as synthetic_row
from medthink.phantoms.writer import write_benchmark
from medthink.report.guessing import audit_group
from medthink.report.runs import group_entries, load_entries
from medthink.runs.manifest import RunSpec
from medthink.runs.selection import Selection
from medthink.runs.session import run_session
from medthink.scoring.score import score_run
from medthink.scoring.scores import difference_text, rate_text
from medthink.stats import detectable_rate
from medthink.stats.chance import largest_count_p_value
from medthink.stats.comparisons.differences import holm
from medthink.stats.intervals import wilson
from medthink.workflow.condition import Condition
from small_benchmark import make_row


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    out = tmp_path_factory.mktemp("audit") / "clean"
    write_benchmark(out, cases=160, seed=5)
    return out


@pytest.fixture(scope="module")
def leaky(clean, tmp_path_factory):
    """The same cases and images with the shortcuts of `data synth --shortcut` in their texts."""
    out = tmp_path_factory.mktemp("audit") / "leaky"
    shutil.copytree(clean, out)
    for split in ("train", "test"):
        titles = [row["title"] for row in map(json.loads, (clean / f"{split}.jsonl").read_bytes().splitlines())]
        rows = [synthetic_row(5, int(title.split()[-1]), shortcut=True) for title in titles]
        write_jsonl(out / f"{split}.jsonl", rows)
    return out


def run(bench, out, **changes):
    run_session(RunSpec(**({"benchmark": bench, "model": "baseline/random", "out": out} | changes)))
    return score_run(out)


@pytest.fixture(scope="module")
def scored(clean, tmp_path_factory):
    """A run on the 40 cases, to be changed by hand."""
    return run(clean, tmp_path_factory.mktemp("scored") / "run")


def variant(scores, *, cases=None, changes=None, **origin):
    """The same run again, with other fields of its condition, other cases, or of another origin."""
    condition = scores.origin.condition | (changes or {})
    origin = replace(scores.origin, **({"name": "variant", "condition": condition} | origin))
    return replace(scores, origin=origin, cases=scores.cases if cases is None else cases)


def audit(scores, *others, guesses=()):
    nobody = Guesses("nobody", "rule", {})
    return audit_run(scores, guesses or [nobody], others)


def test_clean_phantoms_raise_no_alarm(clean):
    found = audit_benchmark(Benchmark.open(clean), "test")
    assert found.alarms == ()
    assert {score.name: score.verdict for score in found.scores}["guesser:images"] == "for information"
    assert sum(found.letters.values()) == found.n_cases == 40
    assert found.problems["answer-in-history"] == found.problems["id-duplicate"] == 0
    assert found.problems["history-duplicate-across-splits"] == 0


def test_planted_shortcuts_raise_the_alarm(leaky):
    found = audit_benchmark(Benchmark.open(leaky), "test")
    assert {"longest option", "guesser:options"} <= {score.name for score in found.alarms}
    assert found.length_gap.characters.low > 0
    assert found.problems["answer-in-history"] > 0


@pytest.mark.parametrize(("hits", "verdict"), [(16, "clear"), (17, "alarm")])
def test_an_alarm_takes_one_per_cent_after_correction_over_the_telling_four(clean, hits, verdict, monkeypatch):
    def guess(name, count):
        cases = list(Benchmark.open(clean)["test"])
        letters = {case.id: case.reference.answer if k < count else "?" for k, case in enumerate(cases)}
        return Guesses(name, "rule", letters)

    right = {"guesser:options": 8, "guesser:question": 0, "guesser:images": 40}
    monkeypatch.setattr(audited, "guess_longest", lambda _: guess("longest option", hits))
    monkeypatch.setattr(audited, "guess_majority", lambda _: guess("majority letter", 9))
    monkeypatch.setattr(
        rivals.KeptGuesses, "by_inputs", lambda _, inputs, *__: guess(f"guesser:{inputs}", right[f"guesser:{inputs}"])
    )
    found = {score.name: score for score in audit_benchmark(Benchmark.open(clean), "test").scores}
    raw = {name: binom.sf(round(one.accuracy.value * 40) - 1, 40, 0.2) for name, one in found.items()}
    del raw["guesser:images"]
    assert [found[name].p_holm for name in raw] == pytest.approx(holm(list(raw.values())).tolist())
    assert found["longest option"].verdict == verdict
    assert {one.verdict for name, one in found.items() if name not in ("longest option", "guesser:images")} == {"clear"}
    assert (found["guesser:images"].p_holm, found["guesser:images"].verdict) == (None, "for information")


def test_a_second_audit_trains_only_what_sees_something_new(clean, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bench = shutil.copytree(clean, tmp_path / "bench")
    trained = []

    def guess(material, inputs):
        trained.append(inputs)
        return guess_by_inputs(material, inputs)

    monkeypatch.setattr(rivals, "guess_by_inputs", guess)
    first = audit_benchmark(Benchmark.open(bench), "test")
    assert trained == ["options", "question", "images"]
    assert audit_benchmark(Benchmark.open(bench), "test") == first
    assert len(trained) == 3
    one, other = sorted((bench / "images").rglob("*.jpg"))[:2]
    one.write_bytes(other.read_bytes())
    audit_benchmark(Benchmark.open(bench), "test")
    assert trained[3:] == ["images"]


def test_guessers_learn_from_the_train_split_and_from_no_case_they_guess(clean):
    benchmark = Benchmark.open(clean)
    assert {case.split for case in guessable_cases(benchmark, "test").lessons} == {"train"}
    assert guessable_cases(benchmark, "train").lessons == []
    cases = [
        replace(case, reference=replace(case.reference, answer="E" if place % 5 == 0 else "A"))
        for place, case in enumerate(list(benchmark["test"])[:10])
    ]
    assert set(guess_majority(Guessable(cases, [])).letters.values()) == {"A"}
    assert set(guess_majority(Guessable(cases, [cases[1], cases[0], cases[5]])).letters.values()) == {"E"}


def test_cases_without_their_answer_are_not_guessed_and_chance_is_a_mean_over_options(tmp_path):
    rows = [make_row(number, 1) for number in range(100, 113)]
    rows[0] |= {"correct_answer": "F"}
    for row in rows[1:7]:
        row |= {"options": {letter: row["options"][letter] for letter in "AB"}, "correct_answer": "A"}
    write_jsonl(tmp_path / "test.jsonl", rows)
    found = audit_benchmark(Benchmark.open(tmp_path), "test")
    assert found.n_cases == 12
    assert found.scores[0].chance == pytest.approx((6 / 2 + 6 / 5) / 12)


def test_the_length_gap_is_to_the_mean_of_the_wrong_options(tmp_path):
    rows = [make_row(number, 1) for number in range(100, 110)]
    for number, row in enumerate(rows):
        lengths = dict(zip("ABCDE", (6, 2, 2, 2, 2) if number < 4 else (4, 8, 0, 0, 0), strict=True))
        row |= {"options": {letter: letter + "x" * n for letter, n in lengths.items()}, "correct_answer": "A"}
    write_jsonl(tmp_path / "test.jsonl", rows)
    found = audit_benchmark(Benchmark.open(tmp_path), "test").length_gap
    assert found.characters.value == pytest.approx((4 * 4 + 6 * 2) / 10)
    assert found.right_is_longest.value == pytest.approx(0.4)


def test_without_a_train_split_guessers_are_cross_validated(leaky):
    material = guessable_cases(Benchmark.open(leaky / "test.jsonl"), "test")
    guesses = guess_by_inputs(material, "options")
    assert guesses.source == "cross-validated"
    assert guesses.letters.keys() == {case.id for case in material.cases}


def own_cases(number, seed=0, letters="ABCDE"):
    """Cases of one's own in made-up words, their right answers by chance."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abdeiklmnoprstu"), 6)) for _ in range(500)]
    rows = []
    for place in range(number):
        texts = [" ".join(rng.choice(words, 2)) for _ in letters]
        options, answer = dict(zip(letters, texts, strict=True)), str(rng.choice(list(letters)))
        row = make_row(place + 1, 0) | {"options": options, "correct_answer": answer}
        rows.append(row | {"correct_answer_text": options[answer], "CLINICAL_HISTORY": " ".join(rng.choice(words, 30))})
    return rows


def opened(rows, folder):
    folder.mkdir(exist_ok=True)
    write_jsonl(folder / "test.jsonl", rows)
    return Benchmark.open(folder / "test.jsonl")


def test_the_majority_letter_of_own_cases_is_tested_as_the_largest_of_five_counts(tmp_path):
    rows = own_cases(90)
    for row, letter in zip(rows, ["A"] * 30 + [letter for letter in "BCDE" for _ in range(15)], strict=True):
        row |= {"correct_answer": letter, "correct_answer_text": row["options"][letter]}
    found = {score.name: score for score in audit_benchmark(opened(rows, tmp_path / "own"), "test").scores}
    # A binomial would say 0.002: as one letter named beforehand, which is not what the rule does.
    assert found["majority letter"].p_holm >= largest_count_p_value(30, 90, 5) > 0.01
    assert found["majority letter"].verdict == "clear"


def test_a_doubled_case_is_no_shortcut_and_is_told_as_what_it_is(tmp_path):
    rows = own_cases(60)
    twins = [row | {"title": f"Case number {place + 100}"} for place, row in enumerate(rows[:30])]
    found = audit_benchmark(opened(rows + twins, tmp_path / "own"), "test")
    assert (found.n_cases, found.n_look_alikes, found.alarms) == (60, 30, ())


def test_look_alikes_are_in_one_fold_and_another_answer_makes_another_case(tmp_path):
    rows = own_cases(20)
    twin = rows[3] | {"title": "Case number 100"}
    other = next(letter for letter in "ABCDE" if letter != rows[5]["correct_answer"])
    unlike = rows[5] | {"title": "Case number 101", "correct_answer": other}
    unlike["correct_answer_text"] = rows[5]["options"][other]
    cases = list(opened([*rows, twin, unlike], tmp_path / "own")["test"])
    groups = look_alike_groups(cases)
    assert groups == [*range(20), 3, 21]
    seen = []
    for fold in _cut(cases, "options", 5, 0, groups):
        seen += fold.held
        assert (3 in fold.held) == (20 in fold.held)
    assert sorted(seen) == list(range(22))


def test_hits_by_chance_are_about_chance_and_the_same_again(tmp_path):
    cases = list(opened(own_cases(40), tmp_path / "own")["test"])
    hits = hits_by_chance(cases, "options", rounds=20)
    assert hits.tolist() == hits_by_chance(cases, "options", rounds=20).tolist()
    assert 5 < hits.mean() < 11 and hits.std() > 0


def test_a_handful_of_cases_is_too_few(clean):
    benchmark = Benchmark.open(clean).filter(lambda case: case.id < 20)
    with pytest.raises(UsageError, match="too few"):
        guessable_cases(benchmark, "test")


def test_the_gain_is_over_the_strongest_rival_on_the_same_cases(clean, tmp_path):
    scores = run(clean, tmp_path / "run")
    cases = [case for case in Benchmark.open(clean)["test"]]
    perfect = Guesses("oracle", "rule", {case.id: case.reference.answer for case in cases})
    for guesses in ([guess_longest(cases), perfect], [perfect, guess_longest(cases)]):
        audit = audit_run(scores, guesses, [])
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


@pytest.mark.parametrize(
    "changes",
    [{"image_share": 0.0}, {"swap_images": True}, {"image_share": 0.0, "show_history": False}, {"option_order": 1}],
)
def test_only_the_same_model_on_the_same_cases_with_one_thing_changed_is_its_own_run(scored, changes):
    own = audit(scored, variant(scored, changes=changes))
    assert len(own.rivals) + len(own.consistency) == 2
    for stranger in (
        variant(scored, changes=changes, model="openai/other"),
        variant(scored, changes=changes, task="twi"),
        variant(scored, changes=changes, text_fingerprint="other"),
        variant(scored, changes=changes, cases=scored.cases[:-1]),
        variant(scored, changes=changes, name=scored.origin.name),
        variant(scored, changes=changes | {"effort": "low"}),
    ):
        found = audit(scored, stranger)
        assert ([rival.name for rival in found.rivals], found.consistency) == (["nobody"], ())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_runs_under_one_blind_condition_both_are_rivals_and_the_stronger_wins(scored, order):
    def right_on(count):
        return tuple(replace(case, right=float(k < count)) for k, case in enumerate(scored.cases))

    blind = {"image_share": 0.0}
    weak, strong = (variant(scored, cases=right_on(n), changes=blind, name=f"blind-{n}") for n in (5, 20))
    own = variant(scored, cases=right_on(30), name="own")
    found = audit(own, *[(weak, strong)[place] for place in order])
    assert sorted(one.accuracy.value for one in found.rivals[1:]) == [5 / 40, 20 / 40]
    assert (found.strongest.run, found.strongest.accuracy, found.strongest_accuracy) == (
        "blind-20", wilson(20, 40), wilson(20, 40)
    )  # fmt: skip
    assert found.diagnostic_gain.value == pytest.approx(10 / 40)


def test_rivals_that_are_equally_strong_have_one_order(scored):
    letters = {case.case: case.gold for case in scored.cases[:10]}
    alike = [Guesses("guesser:options", "train split", letters), Guesses("longest option", "rule", letters)]
    blind = variant(scored, changes={"image_share": 0.0}, cases=tuple(
        replace(case, right=float(k < 10)) for k, case in enumerate(scored.cases)
    ))  # fmt: skip
    for guesses in (alike, alike[::-1]):
        assert audit(scored, blind, guesses=guesses).strongest_rival == "longest option"


def test_consistency_counts_letters_and_silence_is_no_answer(scored):
    def letters(changed):
        return tuple(
            replace(case, letters=(None if k < 4 else changed if k < 14 else "A",), right=float(k >= 14))
            for k, case in enumerate(scored.cases)
        )

    first, second = variant(scored, cases=letters("B"), name="first"), letters("C")
    rotated = variant(scored, cases=(*second[:-5], *(replace(one, right=0.0) for one in second[-5:])),
                      changes={"option_order": 1})  # fmt: skip
    (found,) = audit(first, rotated).consistency
    assert found.same_answer == wilson(26, 40)
    assert found.difference.value == pytest.approx(5 / 40)


def test_the_samples_of_a_case_are_a_share_and_a_rival_misses_where_one_is_wrong(scored):
    def shares(*values):
        return tuple(replace(case, right=values[k % len(values)]) for k, case in enumerate(scored.cases))

    blind = variant(scored, cases=shares(1.0, 1 / 3), changes={"image_share": 0.0})
    rival = audit(variant(scored, cases=shares(1.0, 2 / 3), name="own"), blind).rivals[1]
    assert (rival.accuracy.value, rival.gain.value) == pytest.approx((2 / 3, 1 / 6))
    assert (rival.on_misses.n, rival.on_misses.value) == (20, pytest.approx(2 / 3))


@pytest.mark.parametrize("model", ["random", "majority"])
def test_a_blind_run_of_several_samples_has_one_interval(clean, tmp_path, model):
    blind, own = (
        run(clean, tmp_path / name, model=f"baseline/{model}", condition=Condition(image_share=share, samples=3))
        for name, share in (("blind", 0), ("own", 1))
    )
    rival = audit(own, blind).rivals[1]
    stored = blind.answers.accuracy
    assert (rival.accuracy.low, rival.accuracy.high) == pytest.approx((stored.low, stored.high))


def test_a_case_that_a_guesser_was_not_asked_about_is_missed_by_it(scored):
    letters = {case.case: case.gold for case in scored.cases[:10]}
    (rival,) = audit(scored, guesses=[Guesses("g", "rule", letters)]).rivals
    assert rival.accuracy == wilson(10, 40) and rival.on_misses.n == 30


def with_shown(scored, shown, *, samples=1):
    """The scores with other answers, by right letter and chosen letter as shown."""
    answered = sum(sum(row.values()) for row in shown.values())
    answers = replace(
        scored.answers,
        chosen=dict(sum((Counter(row) for row in shown.values()), Counter())),
        confusion=shown,
        confusion_shown=shown,
        n_cases=answered // samples,
        n_predictions=answered,
    )
    return replace(scored, answers=answers)


def spread(letters, count):
    """Wrong answers on every letter but the right one, so many each."""
    return {key: {letter: count for letter in letters if letter != key} for key in letters}


@pytest.mark.parametrize(("count", "is_tested"), [(1, False), (2, True)])
def test_a_bias_of_place_is_not_told_from_few_wrong_letters(scored, count, is_tested):
    assert (audit(with_shown(scored, spread("ABCDE", count))).place_bias is not None) == is_tested


def test_right_answers_on_an_uneven_key_are_no_bias_of_place(scored):
    key = {"A": 176, "B": 146, "C": 141, "D": 135, "E": 122}
    assert chisquare(list(key.values())).pvalue < 0.05
    perfect = {letter: {letter: count} for letter, count in key.items()}
    assert audit(with_shown(scored, perfect)).place_bias is None
    errors = spread("ABCDE", 5)
    good = {letter: {letter: count, **errors[letter]} for letter, count in key.items()}
    assert audit(with_shown(scored, good)).place_bias.p_value == pytest.approx(1.0)
    errors = {letter: {("A" if letter != "A" else "B"): 20} for letter in "ABCDE"}
    biased = {letter: {letter: count, **errors[letter]} for letter, count in key.items()}
    assert audit(with_shown(scored, biased)).place_bias.p_value < 1e-9


def test_the_key_of_a_bias_of_place_is_in_the_letters_shown(clean, tmp_path):
    condition = Condition(option_order="seeded")
    scores = run(clean, tmp_path / "run", model="baseline/majority", condition=condition)
    shown = scores.answers.confusion_shown
    assert sum(shown.get(letter, {}).get(letter, 0) for letter in "ABCDE") == sum(case.right for case in scores.cases)
    assert set(shown) == set("ABCDE")


def test_a_reader_that_always_says_the_same_letter_shows_a_bias_of_place(clean, tmp_path):
    scores = run(clean, tmp_path / "run", model="baseline/majority")
    audit = audit_run(scores, [guess_longest(list(Benchmark.open(clean)["test"]))], [])
    assert audit.place_bias.p_value < 1e-6
    assert len(audit.place_bias.chosen) == 1


@pytest.mark.parametrize("letters", ["ABCD", "ABCDEF"])
def test_an_even_spread_over_four_or_six_options_is_no_bias_of_place(scored, letters):
    assert audit(with_shown(scored, spread(letters, 3))).place_bias.p_value == pytest.approx(1.0)


def test_the_samples_of_a_case_are_one_witness_of_a_bias_of_place(scored):
    wrong = {"B": 14, "C": 8, "D": 7, "E": 7}
    rest = {key: {letter: 9 for letter in "ABCDE" if letter != key} for key in "BCDE"}
    made = [
        with_shown(
            scored,
            {key: {at: k * count for at, count in row.items()} for key, row in ({"A": wrong} | rest).items()},
            samples=k,
        )
        for k in (1, 5)
    ]
    once, often = (audit(one).place_bias.p_value for one in made)
    assert often == pytest.approx(once)


def test_a_run_on_another_split_is_not_set_against_guesses_about_this_one(clean, tmp_path, capsys):
    run(clean, tmp_path / "run", selection=Selection(split="train"))
    assert run_command(["audit", str(clean), str(tmp_path / "run")]) == 2
    assert "is on the train split" in capsys.readouterr().err


def test_the_command_sets_runs_against_guessers_and_one_another(tmp_path, capfd):
    bench = small_benchmark.write_benchmark(tmp_path / "bench", 12)
    made = {"all": {}, "blind": {"image_share": 0.0}, "talk": {"task": "discussion"}}
    runs = [str(make_run(tmp_path / name, bench, **options)) for name, options in made.items()]
    code = run_command(["audit", str(bench), *runs])
    shown = capfd.readouterr()
    assert ("ALARM" in shown.out, "No alarm" in shown.out) == (code == 1, code == 0)
    assert "all: accuracy" in shown.out and "Diagnostic gain of all: " in shown.out
    words = " ".join(shown.out.split())
    assert words.count("no image-free run of this model was given") == 1
    assert ("No alarm" in words) == ("With 12 cases, a guesser that is right" in words)
    assert "talk: it has no letters" in shown.err
    assert run_command(["audit", str(bench), *runs, "--json"]) == code
    audits = msgspec.json.decode(capfd.readouterr().out)["runs"]
    guessers = ["longest option", "guesser:options", "guesser:question"]
    assert [[rival["name"] for rival in one["rivals"]] for one in audits] == [
        [*guessers, "own run without images"],
        guessers,
    ]


@pytest.mark.parametrize(("kind", "code"), [("clean", 0), ("leaky", 1)])
def test_the_command_says_it_by_its_exit_code(kind, code, request, tmp_path):
    bench = request.getfixturevalue(kind)
    shown = subprocess.run(
        [sys.executable, "-m", "medthink", "audit", str(bench), "--json"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == code, shown.stderr
    found = msgspec.json.decode(shown.stdout)
    assert found["benchmark"]["n_cases"] == 40


def test_report_audit_and_score_credit_a_guesser_with_the_same_gain(leaky, tmp_path, capsys, monkeypatch):
    # The report set runs against the longest option alone, and credited an options-only guesser with +21.7 points.
    monkeypatch.setenv("COLUMNS", "250")
    run(leaky, tmp_path / "guesser", model="baseline/guesser:options")
    assert run_command(["audit", str(leaky), str(tmp_path / "guesser"), "--json"]) == 1
    (found,) = msgspec.json.decode(capsys.readouterr().out)["runs"]
    assert found["diagnostic_gain"]["value"] <= 0
    (group,) = group_entries(load_entries([tmp_path / "guesser"]))
    ((_, audited),) = audit_group(group, trains=False).audits
    assert msgspec.to_builtins(audited.diagnostic_gain) == found["diagnostic_gain"]
    assert run_command(["score", str(tmp_path / "guesser")]) == 0
    shown = capsys.readouterr().out
    assert difference_text(audited.diagnostic_gain) in shown and "strongest rival" in shown
    assert f"{audited.strongest_rival}: {rate_text(audited.strongest_accuracy)}" in shown
    assert "no image-free run of this model was given" in shown


def test_submission_files_are_audited_like_runs(clean, tmp_path, capsys):
    run(clean, tmp_path / "run")
    file = tmp_path / "theirs.jsonl"
    file.write_bytes((tmp_path / "run" / "predictions.jsonl").read_bytes())
    assert run_command(["audit", str(clean), str(tmp_path / "run"), str(file), "--json"]) == 0
    audits = msgspec.json.decode(capsys.readouterr().out)["runs"]
    assert audits[0]["diagnostic_gain"] == audits[1]["diagnostic_gain"]


def test_what_guessers_say_is_trained_once(clean, monkeypatch):
    first = rival_guesses(Benchmark.open(clean), "test")
    assert [one.name for one in first] == ["longest option", "guesser:options", "guesser:question"]
    monkeypatch.setattr("medthink.audit.rivals.guess_by_inputs", None)
    assert rival_guesses(Benchmark.open(clean), "test") == first


def test_too_few_cases_to_train_on_leave_the_rule(tmp_path):
    bench = small_benchmark.write_benchmark(tmp_path / "bench", 5)
    assert [one.name for one in rival_guesses(Benchmark.open(bench), "test")] == ["longest option"]


def test_a_guesser_without_inputs_of_its_own_is_no_evidence_of_its_own(clean, tmp_path):
    bench = tmp_path / "bench"
    bench.mkdir()
    rows = [json.loads(line) | {"CLINICAL_HISTORY": ""} for line in (clean / "test.jsonl").read_text().splitlines()]
    (bench / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {one.name: one for one in audit_benchmark(Benchmark.open(bench), "test").scores}
    assert (found["guesser:question"].verdict, found["guesser:question"].p_holm) == ("same as another", None)
    assert "the options alone again" in found["guesser:question"].meaning
    raw = binomtest(round(found["longest option"].accuracy.value * 40), 40, 0.2, alternative="greater").pvalue
    assert found["longest option"].p_holm <= 3 * raw + 1e-9


def test_no_alarm_says_what_could_have_been_seen(clean):
    found = audit_benchmark(Benchmark.open(clean), "test")
    # Right in 17 of 40 raises the alarm at 1 % over four guessers.
    assert binom.sf(16, 40, 0.2) <= 0.0025 < binom.sf(15, 40, 0.2)
    assert binom.sf(16, 40, found.detectable) == pytest.approx(0.8, abs=1e-6)
    assert detectable_rate(n=22, chance=0.2, alpha=0.0025) > 0.45
    assert detectable_rate(n=3, chance=0.2, alpha=0.0025) is None
