"""The exam: a judge that tells edits from twins passes, one that does not is marked, and nothing is asked twice."""

import csv
import json
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from expert_benchmark import FINDINGS, write_expert_benchmark
from judge_server import JudgeServer, contradict, judge_well, step_verdict
from ledger_rows import replace_predictions
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import DataError, UsageError
from medthink.judge.edits import DELETED, EDITS, INVENTED, OPTION, falsify
from medthink.judge.edits.harmless import lengthen_sentence, merge_sentences
from medthink.judge.edits.harmless import reword as reword_sentence
from medthink.judge.edits.plausible import References
from medthink.judge.exam.grading import is_right_label
from medthink.judge.exam.guessers import guess_exam, guess_sentences
from medthink.judge.exam.make import ExamPlan, make_exam, sentences_of
from medthink.judge.exam.results import (
    LONGER,
    REWORDED,
    UNTOUCHED,
    ExamEdit,
    ExamResult,
    ExamText,
    KindGrades,
    describe_exam,
    keep_results,
    read_results,
    read_sheets,
)
from medthink.judge.exam.run import ExamSpec, read_rewordings, run_exam
from medthink.judge.judged import read_judgements
from medthink.judge.judgement import JudgeConfig
from medthink.judge.session import JudgeSpec, judge_run
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.stats.estimate import Estimate, Measured, Undefined

ITEMS = 12
SAMPLE = Path(__file__).parents[4] / "shared/data/eurorad_sample.csv"


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    return write_expert_benchmark(tmp_path_factory.mktemp("exam") / "bench")


def make(bench: Path, **plan) -> tuple[ExamText, ...]:
    return make_exam(Benchmark.open(bench)["test"], ExamPlan(**({"items": ITEMS} | plan)))


def sit(bench: Path, out: Path, server: JudgeServer | None = None, **changes):
    urls = (server.url,) if server else ()
    judges = ("server/j",) if server else ("baseline/rules",)
    terms = {"judges": judges, "base_urls": urls, "out": out, "benchmark": bench, "plan": ExamPlan(items=ITEMS)}
    return run_exam(ExamSpec(**(terms | changes)))


@cache
def said() -> frozenset[str]:
    """All that the expert's texts say, in these words or with a harmless change."""
    found = set()
    for sentences in map(sentences_of, FINDINGS):
        pairs = (merge_sentences(one, other) for one, other in pairwise(sentences))
        for sentence in sentences:
            turns = range(12)
            found |= {sentence, *(lengthen_sentence(sentence, turn) for turn in turns)}
            found |= {reworded for turn in turns if (reworded := reword_sentence(sentence, turn))}
        found |= {merged for merged in pairs if merged}
    return frozenset(found)


def is_said(unit: str) -> bool:
    return unit in said()


def look_for(finding: str, text: str) -> str:
    """Whether a text mentions a finding, in whatever words, or says the opposite."""
    if finding in text or (reword_sentence(finding) or finding) in text:
        return "mentioned"
    return "contradicted" if any(version in text for version in falsify(finding).values()) else "missed"


def look_word_for_word(finding: str, text: str) -> str:
    return "mentioned" if finding in text else "missed"


def judge_by(is_true, prefer=lambda texts: "tie", reword=lambda text: text.replace("is", "was"), look=look_for):
    """A judge who calls steps true or not, looks for findings by their words, prefers, and writes in its own words."""

    def answer(nonce, data, outside):
        if set(data) == {"text"}:
            return json.dumps({"call": nonce, "text": reword(data["text"])})
        units, texts = data["units"], data["author"]["text"]
        if '"preferred"' in outside:
            verdicts = [{"id": units[0]["id"], "reason": "so", "preferred": prefer(texts)}]
        elif '"missed"' in outside:
            verdicts = [{"id": u["id"], "reason": "so", "finding": look(u["text"], texts[u["part"]])} for u in units]
        else:
            told = [is_true(u["text"], data) for u in units]
            verdicts = [step_verdict(u) if one else contradict(u) for u, one in zip(units, told, strict=True)]
        return json.dumps({"call": nonce, "verdicts": verdicts})

    return answer


def good(unit: str, data: dict) -> bool:
    return is_said(unit) or (data["case"]["diagnosis"] in unit)


def test_a_sheet_is_an_experts_text_with_one_sentence_made_false(bench):
    sheets = make(bench)
    plain = [one for one in sheets if one.form == "statements" and one.reverses is None]
    edits = Counter(change.edit for sheet in plain for change in sheet.changes if not change.is_true)
    assert edits.keys() >= {"side", "negation dropped", "negation added", "size", "unit", "position", "level"}
    assert edits.keys() >= {"signal or margin", "direction of change", "modality", OPTION, INVENTED}
    assert max(edits.values()) <= ITEMS
    for sheet in plain:
        (false,) = [change for change in sheet.changes if not change.is_true]
        units = [sheet.texts[0][start:end] for start, end in sheet.spans]
        assert " ".join(units) == sheet.texts[0]
        for place, unit in enumerate(units):
            change = sheet.change_of(place)
            if change.edit == UNTOUCHED:
                assert is_said(unit)
            elif change is false and change.edit != INVENTED:
                assert change.before != unit and not is_said(unit)
    twins = Counter(change.edit for sheet in plain for change in sheet.changes if change.is_true)
    assert twins[REWORDED] > 10 and twins[LONGER] > 10


def test_every_false_text_has_its_true_one_and_every_pair_comes_in_both_orders(bench):
    sheets = make(bench)
    omissions = [one for one in sheets if one.form == "omission"]
    edits = Counter(one.changes[0].edit for one in omissions)
    assert edits[DELETED] == edits[UNTOUCHED] >= edits[REWORDED] > 0
    assert len(edits - Counter({DELETED: 99, UNTOUCHED: 99, REWORDED: 99})) > 1, "findings made false in several ways"
    for one in omissions:
        (change,) = one.changes
        assert change.is_true == (change.edit in (UNTOUCHED, REWORDED))
        assert (one.finding in one.texts[0]) == (change.edit == UNTOUCHED)
    pairs = [one for one in sheets if one.form == "pair"]
    assert len(pairs) == ITEMS
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        assert first.texts == second.texts[::-1] and (first.is_first, second.is_first) == (True, False)
        assert len(first.texts[0]) > len(first.texts[1])
    turned = [one for one in sheets if one.reverses is not None]
    assert len(turned) == ITEMS
    for sheet in turned:
        units, others = (one.units(one.source("steps")).units for one in (sheet, sheets[sheet.reverses]))
        assert [unit.text for unit in units] == [unit.text for unit in others][::-1]
        marked = sheet.source("steps").marked(units)["rationale"]
        assert marked.startswith(f"«{len(units)}» "), "the marks do not follow the text"


def test_the_same_seed_gives_the_same_exam_and_another_one_another(bench):
    assert make(bench) == make(bench)
    assert make(bench) != make(bench, seed=1)
    numbers = [sheet.number for sheet in make(bench)]
    assert len(set(numbers)) == len(numbers)


def test_texts_that_cannot_be_edited_make_no_exam(tmp_path):
    from small_benchmark import write_benchmark

    with pytest.raises(DataError, match="none of the expert's sentences can be edited"):
        sit(write_benchmark(tmp_path / "bench", cases=2), tmp_path / "exam")
    assert not (tmp_path / "exam").exists()


def test_a_judge_that_tells_edits_from_twins_finds_all_and_accepts_all(bench, tmp_path):
    with JudgeServer(judge_by(good)) as server:
        (result,) = sit(bench, tmp_path / "exam", server).results
    steps, omissions = result.kinds["steps"], result.kinds["omissions"]
    assert steps.sensitivity.value == 1.0 and steps.asked == steps.judged
    assert {name: one.value for name, one in steps.found.items()} == dict.fromkeys(steps.found, 1.0)
    assert {name: one.value for name, one in steps.accepted.items()} == dict.fromkeys(
        (UNTOUCHED, REWORDED, LONGER), 1.0
    )
    assert steps.same_again.value == steps.same_reversed.value == steps.kappa_again.value == 1.0
    assert omissions.found[DELETED].value == omissions.accepted[UNTOUCHED].value == 1.0
    # With so few cases the lower limits are not reached, and only they are missing.
    assert all("lower limit" in one for one in steps.shortfalls())
    assert omissions.shortfalls() == ()


@pytest.mark.parametrize(
    ("judge", "sensitivity", "accepted", "missing"),
    [
        (lambda unit, data: True, 0.0, 1.0, "finds lower limit 0.0 %"),
        (lambda unit, data: False, 1.0, 0.0, "accepts untouched lower limit 0.0 %"),
        (lambda unit, data: unit in data["case"]["findings"], 1.0, 1.0, "accepts reworded lower limit 0.0 %"),
    ],
)
def test_a_judge_that_believes_or_doubts_everything_or_every_change_is_below_the_floor(
    judge, sensitivity, accepted, missing, bench, tmp_path
):
    with JudgeServer(judge_by(judge)) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("steps",)).results
    marks = result.kinds["steps"]
    assert marks.sensitivity.value == sensitivity
    assert marks.accepted[UNTOUCHED].value == accepted
    assert any(one.startswith(missing) for one in marks.shortfalls())


def test_a_judge_that_looks_for_findings_word_for_word_is_below_the_floor(bench, tmp_path):
    with JudgeServer(judge_by(good, look=look_word_for_word)) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("omissions",)).results
    marks = result.kinds["omissions"]
    assert marks.found[DELETED].value == marks.accepted[UNTOUCHED].value == 1.0
    assert marks.accepted[REWORDED].value == 0.0 and marks.sensitivity.value < 0.85
    assert len(marks.shortfalls()) >= 2


def test_not_to_support_is_enough_where_the_experts_are_silent():
    silent = [INVENTED, "modality"]
    for edit in (*EDITS, OPTION, INVENTED):
        change = ExamEdit(place=0, edit=edit, is_true=False, before="")
        labels = {
            label: is_right_label("steps", change, label) for label in ("supported", "contradicted", "unverifiable")
        }
        assert labels == {"supported": False, "contradicted": True, "unverifiable": edit in silent}
    untouched = ExamEdit(place=0, edit=UNTOUCHED, is_true=True, before="")
    assert is_right_label("discussion", untouched, "correct") and not is_right_label(
        "discussion", untouched, "incorrect"
    )
    deleted = ExamEdit(place=0, edit=DELETED, is_true=False, before="")
    assert is_right_label("omissions", deleted, "missed") and not is_right_label("omissions", deleted, "contradicted")
    turned = ExamEdit(place=0, edit="side", is_true=False, before="")
    assert is_right_label("omissions", turned, "contradicted") and not is_right_label("omissions", turned, "missed")


def test_statements_and_sentences_are_examined_by_their_own_prompts(bench, tmp_path):
    (result,) = sit(bench, tmp_path / "exam", what=("findings", "discussion")).results
    assert set(result.kinds) == set(result.prompts) == {"findings", "discussion"}
    assert len(set(result.prompts.values())) == 2
    assert result.pairs is None
    assert result.kinds["discussion"].judged == result.kinds["discussion"].asked > 50


def test_what_is_unjudged_is_no_mark_and_too_much_of_it_is_below_the_floor(bench, tmp_path):
    def some(nonce, data, outside):
        if "rationale" in data.get("author", {}).get("text", {}) and "12 mm" in str(data["units"]):
            return "no JSON"
        return judge_by(good)(nonce, data, outside)

    with JudgeServer(some) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("steps",)).results
    marks = result.kinds["steps"]
    assert 0 < marks.judged < marks.asked
    assert marks.sensitivity.value == 1.0, "a reply that cannot be read counted as an error not found"
    assert any(one.startswith(f"judged {marks.judged}") for one in marks.shortfalls())


def test_an_unfinished_exam_does_not_pass(bench, tmp_path):
    with JudgeServer(judge_by(good)) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("omissions",), max_calls=4).results
        marks = result.kinds["omissions"]
        assert marks.sensitivity.value == 1.0
        assert marks.judged == 4 < marks.asked, "the sheets that it has not reached are due"
        assert any(one.startswith("judged 4 of") for one in marks.shortfalls())
        (done,) = sit(bench, tmp_path / "exam", server, what=("omissions",)).results
    assert done.kinds["omissions"].asked == done.kinds["omissions"].judged == marks.asked


def test_a_judge_that_goes_by_the_place_is_found_out(bench, tmp_path):
    with JudgeServer(judge_by(good, prefer=lambda texts: "first")) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("preference",)).results
    assert (result.pairs.same_swapped.value, result.pairs.first.value) == (0.0, 1.0)
    assert result.pairs.longer.value == result.pairs.own.value == 0.5


def test_a_judge_that_loves_length_or_its_own_words_is_found_out(bench, tmp_path):
    def longer(texts):
        first, second = len(texts["first"]), len(texts["second"])
        return "tie" if abs(first - second) < 50 else "first" if first > second else "second"

    def own(texts):
        first, second = (" was " in texts[name] for name in ("first", "second"))
        return "tie" if first == second else "first" if first else "second"

    with JudgeServer(judge_by(good, prefer=longer)) as server:
        (vain,) = sit(bench, tmp_path / "a", server, what=("preference",)).results
    assert (vain.pairs.longer.value, vain.pairs.own.value, vain.pairs.same_swapped.value) == (1.0, 0.5, 1.0)
    with JudgeServer(judge_by(good, prefer=own)) as server:
        (fond,) = sit(bench, tmp_path / "b", server, what=("preference",)).results
        assert (fond.pairs.longer.value, fond.pairs.own.value) == (0.5, 1.0)
        # Another judge of the same exam is asked about these words too.
        sit(bench, tmp_path / "b", None, what=("preference",))
    first, second = read_results(tmp_path / "b/results.json")
    assert (first.judge, second.judge) == ("baseline/rules", "server/j")
    assert (fond.pairs.own_by_others.value, second.pairs.own_by_others.value) == (None, 0.5)


def test_own_words_that_change_numbers_or_length_are_not_compared(bench, tmp_path):
    def boast(text):
        return f"{text} It measured 99 mm on the left."

    with JudgeServer(judge_by(good, reword=boast)) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("preference",)).results
    assert result.pairs.own.value is None
    assert not read_rewordings(tmp_path / "exam")


def test_a_judge_that_changes_its_mind_shows_it(bench, tmp_path):
    seen: Counter[str] = Counter()

    def moody(unit, data):
        seen[unit] += 1
        return good(unit, data) == bool(seen[unit] % 2)

    with JudgeServer(judge_by(moody)) as server:
        (result,) = sit(bench, tmp_path / "exam", server, what=("steps",)).results
    assert result.kinds["steps"].same_again.value < 1.0


def test_an_exam_is_continued_where_it_stopped_and_nothing_is_asked_twice(bench, tmp_path):
    out = tmp_path / "exam"
    with JudgeServer(judge_by(good)) as server:
        stopped = sit(bench, out, server, max_calls=20)
        assert stopped.stopped_by is not None and stopped.calls_made == 20
        whole = sit(bench, out, server)
        assert whole.stopped_by is None
        asked = len(server.bodies)
        assert asked == 20 + whole.calls_made
        before = {path.name: path.read_bytes() for path in out.glob("*.json*")}
        again = sit(None, out, server, plan=None)
        assert (again.calls_made, len(server.bodies)) == (0, asked)
        assert again.results == whole.results
    assert {path.name: path.read_bytes() for path in out.glob("*.json*")} == before
    assert len(read_judgements(out)) == sum(marks.asked for marks in whole.results[0].kinds.values()) + 2 * ITEMS


def test_answers_to_earlier_words_of_a_prompt_are_not_mixed_in(bench, tmp_path, monkeypatch):
    out = tmp_path / "exam"
    with JudgeServer(judge_by(lambda unit, data: True)) as server:
        (before,) = sit(bench, out, server, what=("steps",)).results
    monkeypatch.setattr("medthink.judge.exam.run.prompt_version", lambda what: "newer")
    monkeypatch.setattr("medthink.judge.asking.prompt_version", lambda what: "newer")
    assert sit(bench, out, None, what=("steps",)).results, "another judge sits the exam by the new words"
    kept = {one.judge: one for one in read_results(out / "results.json")}
    assert kept["server/j"] == before
    with JudgeServer(judge_by(good)) as server:
        (after,) = sit(bench, out, server, what=("steps",)).results
    assert after.prompts == {"steps": "newer"} and after.kinds["steps"].asked == before.kinds["steps"].asked


def test_an_exam_of_another_plan_or_benchmark_is_not_mixed_in(bench, tmp_path):
    out = tmp_path / "exam"
    sit(bench, out)
    with pytest.raises(UsageError, match="12 items per edit"):
        sit(bench, out, plan=ExamPlan(items=5))
    other = write_expert_benchmark(tmp_path / "other", cases=3)
    with pytest.raises(UsageError, match="another benchmark"):
        sit(other, out)
    with pytest.raises(UsageError, match="no exam for nonsense"):
        sit(bench, out, what=("nonsense",))
    with pytest.raises(UsageError, match="contains no exam yet"):
        sit(None, tmp_path / "empty")
    (out / "sheets.jsonl").write_text('{"number": 1}\n')
    with pytest.raises(DataError, match=r"sheets.jsonl:1: not a sheet"):
        sit(bench, out)


def test_a_new_result_takes_the_place_of_the_old_one_of_the_same_setting(bench, tmp_path):
    (result,) = sit(bench, tmp_path / "exam", what=("omissions",)).results
    path = tmp_path / "exams.json"
    keep_results(path, [result])
    newer = msgspec.structs.replace(result, exam="x")
    other = msgspec.structs.replace(result, setting=msgspec.structs.replace(result.setting, effort="high"))
    assert sorted(keep_results(path, [newer, other]), key=repr) == sorted([newer, other], key=repr)
    assert len(read_results(path)) == 2
    path.write_text("{}")
    with pytest.raises(DataError, match="not results of an exam"):
        read_results(path)


def rate(value: float, low: float, n: int = 320) -> Estimate:
    return Estimate(value=value, low=low, high=1.0, level=0.95, n=n, clusters=n, method="made")


NO_GUESSER = Undefined(reason="no such units", n=0)


def marks_of(sensitivity=0.93, edit=0.9, true=0.97, guesser: Measured = NO_GUESSER) -> KindGrades:
    return KindGrades(
        asked=100,
        judged=100,
        sensitivity=rate(sensitivity, sensitivity - 0.03),
        found={"side": rate(edit, edit - 0.1, 40), "level": rate(0.1, 0.0, 9), INVENTED: rate(0.2, 0.1, 40)},
        accepted={UNTOUCHED: rate(true, true - 0.02), REWORDED: rate(0.99, 0.97), LONGER: rate(0.5, 0.4)},
        same_again=rate(1, 1),
        kappa_again=rate(1, 1),
        same_reversed=rate(1, 1),
        guesser=guesser,
    )


def test_the_floor_is_the_documented_one():
    assert marks_of().shortfalls() == (), "what stands apart counted"
    assert marks_of(sensitivity=0.879).shortfalls() == ("finds lower limit 84.9 %, under 85 %",)
    assert marks_of(edit=0.74).shortfalls() == ("finds side 74.0 %, under 75 %",)
    assert marks_of(true=0.91).shortfalls() == ("accepts untouched lower limit 89.0 %, under 90 %",)
    page = (Path(__file__).parents[3] / "docs/judging.md").read_text()
    for word in ("85 %", "75 %", "90 %", "BELOW THE FLOOR"):
        assert word in page


def judged_run(bench: Path, root: Path) -> Path:
    run = root / "run"
    run_session(RunSpec(benchmark=bench, model="baseline/random", out=run))
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    text = "CT showed a large mass in the left kidney. So it is WRONG."
    lines = [json.dumps(row | {"prediction_rationale": text}) + "\n" for row in rows]
    replace_predictions(run, "".join(lines).encode())
    return run


def test_a_judged_number_shows_its_judges_exam_in_terminal_and_report(bench, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    run = judged_run(bench, tmp_path)
    with JudgeServer(judge_well) as server:
        words = ["judge", str(run), "--judge", "server/j", "--base-url", server.url, "--segmenter", "sentences"]
        assert run_command(words) == 0
    assert "not examined" in capsys.readouterr().out
    with JudgeServer(judge_by(lambda unit, data: True)) as server:
        exam = ["exam", str(run), "--judge", "server/j", "--base-url", server.url, "--count", "6"]
        assert run_command([*exam, "--out", str(tmp_path / "exam")]) == 1
    out = capsys.readouterr()
    assert "BELOW THE FLOOR" in out.out and "below the floor: server/j" in out.err
    with JudgeServer(judge_well) as server:
        assert run_command([*words[:4], "--base-url", server.url]) == 0
        shown = capsys.readouterr().out
        assert "judge's exam" in shown and "BELOW THE FLOOR: finds 0.0 %" in shown
        assert "agreement with readers" in shown
        run_command([*words[:4], "--base-url", server.url, "--effort", "high"])
        assert "not examined under this setting" in capsys.readouterr().out
    page = tmp_path / "report.html"
    assert run_command(["report", str(run), "-o", str(page)]) == 0
    text = page.read_text()
    assert "Exam of the judge" in text and "BELOW THE FLOOR: finds 0.0 %" in text
    assert "Exams of the judges" in text and "Biases of the judges" in text and "negation dropped" in text


def test_the_command_examines_the_embedded_judge_offline(bench, tmp_path, capsys):
    words = ["exam", str(bench), "--judge", "baseline/rules", "--count", "4", "--out", str(tmp_path / "e")]
    assert run_command(words) == 0, "a smoke test is no judge below the floor"
    shown = capsys.readouterr().out
    for word in (
        "finds side",
        "accepts reworded",
        "same label in reverse order",
        "κ with itself",
        "own wording preferred",
    ):
        assert word in shown
    assert run_command(["exam", "--judge", "baseline/rules", "--out", str(tmp_path / "e"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["calls_made_now"] == 0
    (result,) = told["results"]
    assert result["is_smoke_test"] and "steps" in result["shortfalls"]
    assert msgspec.convert({k: v for k, v in result.items() if k != "shortfalls"}, ExamResult).judge == "baseline/rules"


def test_an_exam_that_nobody_answers_says_so(bench, tmp_path, capsys):
    words = ["exam", str(bench), "--judge", "server/x", "--base-url", "http://127.0.0.1:9/v1"]
    assert run_command([*words, "--out", str(tmp_path / "e"), "--max-wait", "0"]) == 3
    assert run_command(["exam", str(bench), str(tmp_path), "--judge", "baseline/rules"]) == 2
    assert "one benchmark, not from 2" in capsys.readouterr().err
    run = judged_run(write_expert_benchmark(tmp_path / "other", cases=3), tmp_path)
    words = ["exam", str(bench), str(run), "--judge", "baseline/rules", "--count", "2"]
    assert run_command([*words, "--out", str(tmp_path / "f")]) == 2
    assert "from different benchmarks" in capsys.readouterr().err
    assert not (run / "exams.json").exists()


def test_sheets_of_an_exam_are_kept_as_they_were_asked(bench, tmp_path):
    sit(bench, tmp_path / "exam", what=("omissions",))
    assert read_sheets(tmp_path / "exam") == make(bench)
    order = JudgeSpec(run=judged_run(bench, tmp_path), judges=("baseline/rules",))
    assert judge_run(order).calls_made > 0


def test_the_source_free_guesser_is_right_as_often_as_wrong(bench):
    found = guess_exam(make(bench, items=40), "steps")
    assert found.low <= 0.5 <= found.high


def test_an_exam_that_can_be_guessed_without_the_case_is_told_apart(bench):
    sheets = make(bench, items=40)
    given_away = [
        msgspec.structs.replace(
            sheet,
            texts=(text := " ".join(words(sheet)),),
            spans=tuple((text.index(one), text.index(one) + len(one)) for one in words(sheet)),
        )
        for sheet in sheets
        if sheet.form == "statements" and sheet.reverses is None
    ]
    assert guess_sentences(given_away).low > 0.5
    fault = marks_of(guesser=rate(0.7, 0.6)).shortfalls()
    assert fault == ("the exam can be guessed without the case",)
    assert marks_of(guesser=rate(0.55, 0.45)).shortfalls() == ()


def words(sheet: ExamText) -> list[str]:
    """Its sentences; those made false say so."""
    units = [sheet.texts[0][start:end] for start, end in sheet.spans]
    return [one if sheet.change_of(place).is_true else f"Zz {one}" for place, one in enumerate(units)]


def test_the_verbatim_guesser_sits_the_exam_in_omissions_and_fails(bench, tmp_path, capsys):
    (result,) = sit(bench, tmp_path / "exam").results
    marks = result.kinds["omissions"]
    assert marks.guesser.value < 0.85 and marks.guesser_name == "verbatim"
    assert result.kinds["steps"].guesser_name == "source-free"
    run_command(["exam", "--judge", "baseline/rules", "--out", str(tmp_path / "exam")])
    shown = capsys.readouterr().out
    assert "right: the verbatim guesser" in shown and "right: the source-free guesser" in shown
    seat = JudgeConfig(judge=result.judge, setting=result.setting, prompt=result.prompts["steps"])
    assert "; the source-free guesser is right in " in describe_exam([result], seat, "steps")


def test_edits_say_nothing_that_no_expert_would_write():
    texts = ("There was early enhancement.", "The left kidney is small.", "The right lung is clear.", "A small node.")
    references = References.of(texts)
    assert references.allow("The mass in the left lung.", "The mass in the right lung.")
    assert not references.allow("There was distal stenosis.", "There was proximal enhancement.")
    assert not references.allow("An ivory-like increase.", "An ivory-like decrease.")
    assert not references.allow("A node of 2.2 cm.", "A node of 22 cm.")
    assert references.allow("A node of 12 mm.", "A node of 24 mm.")


def test_true_edits_are_many_and_false_sentences_are_rephrased_too(bench):
    sheets = [one for one in make(bench, items=40) if one.form == "statements" and one.reverses is None]
    longer = {
        sheet.texts[0][slice(*sheet.spans[change.place])].replace(change.before.rstrip("."), "")
        for sheet in sheets
        for change in sheet.changes
        if change.edit == LONGER
    }
    assert len(longer) >= 8
    false = [change for sheet in sheets for change in sheet.changes if not change.is_true]
    assert 0.2 < sum(change.is_rephrased for change in false) / len(false) < 0.6
    merged = [change for sheet in sheets for change in sheet.changes if len(sentences_of(change.before)) == 2]
    assert merged and all(change.edit == REWORDED for change in merged)


@pytest.mark.skipif(not SAMPLE.is_file(), reason="no shared/data/eurorad_sample.csv")
def test_the_guessers_do_no_better_on_real_findings(bench):
    one = next(iter(Benchmark.open(bench)["test"]))
    with SAMPLE.open(encoding="utf-8", newline="") as stream:
        texts = [row["PostDescription"].split("Imaging Findings:")[-1].strip() for row in csv.DictReader(stream)]
    cases = [
        msgspec.structs.replace(
            one, id=number, reference=msgspec.structs.replace(one.reference, findings=text, discussion="", images=())
        )
        for number, text in enumerate(texts, start=1)
    ]
    sheets = make_exam(cases, ExamPlan())
    found = guess_sentences(sheets)
    assert found.n > 200 and found.low <= 0.5 <= found.high
    assert guess_exam(sheets, "omissions").high < 0.85
