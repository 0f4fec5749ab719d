"""The skeleton: one decision a case, counts that add up, verified evidence, failed calls, rulings, resuming."""

import csv
import io
import json
import sys
import types
from typing import Annotated

import pytest
from msgspec import Meta

from drafts import draft, read_drafts, try_stage, write_drafts
from judge_server import JudgeServer
from medthink.core.errors import DataError, UsageError
from medthink.curate.ask import curate_prompt
from medthink.curate.build import build
from medthink.curate.decision import Quote, drop_case, find_quote, hold_case, pass_case
from medthink.curate.plan import read_plan
from medthink.curate.settings import STAGES, ModelSettings, StageEntry, read_stage_settings
from medthink.curate.stage import Stage
from medthink.workflow.forms import PromptFiles, ReplyForm, one_of


class ToySettings(ModelSettings, frozen=True, kw_only=True):
    word: Annotated[str, Meta(description="The word to look for.")] = "pain"


class ToyForm(ReplyForm, frozen=True):
    verdict: str


class ToyStage(Stage[ToySettings]):
    name = "toy"

    async def decide(self, one, ask, rulings):
        quote = find_quote(one, "CLINICAL_HISTORY", self.settings.word)
        if "FORGED" in one.case.question.history:
            return pass_case(one, evidence=[Quote("CLINICAL_HISTORY", 0, 4, "nope")])
        if quote is None:
            return drop_case("no-word")
        if ask is None:
            if "unsure" not in one.gold:
                return pass_case(one)
            question = hold_case("unsure", proposal="maybe", evidence=[quote])
            return pass_case(one.with_mark("toy", rulings.value_of(question, lambda value: value or "agreed")))
        words = {"verdict": one_of(["fine"])}
        prompt = curate_prompt("toy", one.id, data={"n": one.id}, form=words, by_rules={"verdict": "fine"})
        reply = await ask(prompt, ToyForm, one.id)
        return pass_case(one.with_mark("toy", reply.verdict), by=ask.by, evidence=[quote])

    def not_covered(self):
        return () if self.settings.model else ("what a model would see",)


@pytest.fixture(autouse=True)
def toy(monkeypatch, tmp_path):
    module = types.ModuleType("medthink.curate.stages.toy")
    module.STAGE = ToyStage
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(STAGES, "toy", StageEntry("A toy", ToySettings))
    monkeypatch.setattr(PromptFiles, "read", lambda _, kind: f"words of {kind} for {{{{call}}}}")


def _drafts(count=12):
    return [draft(n, history="No word." if n % 3 == 0 else "Some pain here.") for n in range(1, count + 1)]


def _fails_for(numbers):
    def fails(body):
        text = json.dumps(body)
        return any(f'\\"n\\\\\\": {n}}}' in text or f'\\"n\\": {n}}}' in text for n in numbers)

    return fails


def test_every_case_has_one_decision_and_the_counts_add_up(tmp_path):
    trial = try_stage("toy", tmp_path, _drafts())
    counts = trial.end.counts
    assert counts.seen == 12 == counts.kept + counts.changed + counts.out + counts.undecided
    assert (counts.out, counts.kept, counts.reasons) == (4, 8, {"out": {"no-word": 4}})
    assert sorted(trial.decisions) == list(range(1, 13))
    assert sorted(trial.kept) == [n for n in range(1, 13) if n % 3]


def test_the_input_is_not_touched(tmp_path):
    source = write_drafts(tmp_path / "in.jsonl", _drafts())
    before = source.read_bytes()
    try_stage("toy", tmp_path, source, model="baseline/rules")
    assert source.read_bytes() == before


def test_what_changed_is_logged_before_and_after(tmp_path):
    trial = try_stage("toy", tmp_path, _drafts(2), model="baseline/rules")
    (change,) = trial.decisions[1].changes
    assert (change.field, change.before, change.after) == ("curation.marks", None, {"toy": "fine"})
    assert trial.decisions[1].by == "model baseline/rules"
    assert trial.decisions[1].evidence[0].text == "pain"


def test_evidence_that_does_not_stand_in_the_case_is_a_bug(tmp_path):
    with pytest.raises(AssertionError, match="quoted evidence is not in the case"):
        try_stage("toy", tmp_path, [draft(1, history="FORGED pain")])
    assert not (tmp_path / "work/cases/toy.jsonl").exists()


def test_a_number_that_stands_twice_is_refused(tmp_path):
    with pytest.raises(DataError, match="two cases have the number 1"):
        try_stage("toy", tmp_path, [draft(1), draft(1)])


def test_failed_calls_leave_exactly_their_cases_undecided_and_a_second_run_settles_them(tmp_path):
    drafts = [draft(n, history="Some pain here.") for n in range(1, 21)]
    failing = [n for n in range(1, 21) if n % 2]

    def answer(nonce, data, outside):
        return json.dumps({"call": nonce, "verdict": "fine"})

    with JudgeServer(answer) as server:
        server.fails = _fails_for(failing)
        settings = {"model": "server/toy", "base_url": (server.url,), "concurrency": 1}
        first = try_stage("toy", tmp_path, drafts, **settings)
        open_now = [n for n, one in first.decisions.items() if one.verdict == "undecided"]
        assert open_now == failing
        assert {one.reason for n, one in first.decisions.items() if n in failing} == {"call-failed"}
        assert sorted(first.kept) == [n for n in range(1, 21) if n not in failing]
        server.fails = None
        asked_before = len(server.bodies)
        second = try_stage("toy", tmp_path, drafts, **settings)
    assert second.end.counts.undecided == 0 and second.end.counts.changed == 20
    assert len(server.bodies) - asked_before == len(failing)


def test_a_limit_on_calls_leaves_the_rest_not_asked(tmp_path):
    drafts = [draft(n, history="Some pain here.") for n in range(1, 11)]
    trial = try_stage("toy", tmp_path, drafts, model="baseline/rules", max_calls=4)
    assert trial.end.stopped_by is not None
    assert trial.end.counts.reasons["undecided"] == {"not-asked": 6}
    assert trial.end.counts.changed == 4


def test_a_reply_in_the_wrong_form_is_asked_again_and_in_the_end_leaves_the_case_open(tmp_path):
    with JudgeServer(lambda nonce, data, outside: "no JSON") as server:
        trial = try_stage("toy", tmp_path, _drafts(1), model="server/toy", base_url=(server.url,))
        assert len(server.bodies) == 3
    assert trial.decisions[1].verdict == "undecided"
    assert trial.decisions[1].detail.startswith("unparsed")


WHOLE = """work = "work"
review_sample = 2
[ingest]
source = "raw.csv"
min_images = 0
needs_licence = false
[toy]
"""


def _plan(tmp_path, text):
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _table(tmp_path, rows):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([["id", "clinical_history", "final_diagnosis"], *rows])
    (tmp_path / "raw.csv").write_text(text.getvalue(), encoding="utf-8")


@pytest.mark.parametrize(("encoding", "delimiter"), [("utf-8-sig", ","), ("cp1252", ";")])
def test_a_build_obeys_the_review_sheet_and_keeps_what_is_filled_in(tmp_path, encoding, delimiter):
    _table(tmp_path, [(n, "Some pain.", "unsure thing" if n < 3 else "sure thing") for n in range(1, 7)])
    plan = read_plan(_plan(tmp_path, WHOLE))
    first = build(plan)
    assert first.waiting == 2 and first.stages[-1].counts.undecided == 2
    assert first.stages[-1].not_covered == ("what a model would see",)
    sheet = tmp_path / "work/review.csv"
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    assert [row["case"] for row in rows if row["asked"] == "decide"] == ["1", "2"]
    for row in rows:
        if row["asked"] == "decide":
            row["ruling"], row["value"] = ("in", "by hand") if row["case"] == "1" else ("out", "")
        elif row["stage"] == "toy":
            row["is_right"] = "yes"
            row["note"] = "geprüft"
    with sheet.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    second = build(plan)
    assert second.waiting == 0 and second.stages[-1].counts.undecided == 0
    kept = {one.id: one for one in read_drafts(tmp_path / "work/cases/toy.jsonl")}
    assert 2 not in kept and kept[1].notes.marks == {"toy": "by hand"}
    (errors,) = second.errors
    assert (errors.stage, errors.checked, errors.wrong) == ("toy", 2, 0)
    assert errors.bound == pytest.approx(1 - 0.05 ** (1 / 2))
    again = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    assert {(row["case"], row["ruling"]) for row in again if row["ruling"]} == {("1", "in"), ("2", "out")}


def test_a_stage_that_nothing_changed_for_is_not_run_again(tmp_path):
    _table(tmp_path, [(1, "Some pain.", "Lipoma")])
    path = _plan(tmp_path, WHOLE)
    seen = []

    def watch(stage):
        seen.append(stage)
        return lambda: None

    build(read_plan(path), watch)
    build(read_plan(path), watch)
    assert seen == ["ingest", "toy"]
    path.write_text(path.read_text(encoding="utf-8") + 'word = "Some"\n', encoding="utf-8")
    build(read_plan(path), watch)
    assert seen == ["ingest", "toy", "toy"]
    _table(tmp_path, [(1, "Some pain.", "Lipoma"), (2, "Some pain.", "Sarcoma")])
    build(read_plan(path), watch)
    assert seen[3:] == ["ingest", "toy"]


def test_a_changed_prompt_runs_the_stages_that_ask_again_and_no_others(tmp_path, monkeypatch):

    _table(tmp_path, [(1, "Some pain.", "Lipoma")])
    path = _plan(tmp_path, WHOLE + 'model = "baseline/rules"\n[timeline]\n')
    seen = []

    def watch(stage):
        seen.append(stage)
        return lambda: None

    build(read_plan(path), watch)
    assert sorted(seen) == ["ingest", "timeline", "toy"]
    monkeypatch.setattr(PromptFiles, "read", lambda _, kind: f"other words of {kind} for {{{{call}}}}")
    build(read_plan(path), watch)
    assert seen[3:] == ["toy"]


def test_a_build_that_leaves_nothing_says_so(tmp_path):
    _table(tmp_path, [(1, "None.", "Lipoma")])
    end = build(read_plan(_plan(tmp_path, WHOLE)))
    assert "no case is left after toy" in str(end.stopped_by)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('work = "w"\n[toi]\n', "toi"),
        ("[toy]\n", "work"),
        ('work = "w"\nseed = "x"\n[toy]\n', "seed"),
        ('work = "w"\n[toy]\nwrod = "x"\n', "toy"),
        ('work = "w"\n[toy]\nmax_calls = -1\n', "toy"),
    ],
)
def test_a_plan_names_the_field_that_is_wrong(tmp_path, text, field):
    with pytest.raises(DataError) as caught:
        read_plan(_plan(tmp_path, text))
    assert caught.value.field == field and caught.value.remedy


def test_unknown_settings_are_refused_with_the_closest_name():
    with pytest.raises(UsageError, match="did you mean word"):
        read_stage_settings("toy", {"wodr": "x"})
