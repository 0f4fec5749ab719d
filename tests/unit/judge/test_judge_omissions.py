"""Decisive findings: listed once with quotations, editable, and looked for in every text."""

import json
from fractions import Fraction

import msgspec
import pytest

from judge_server import JudgeServer, judge_well, list_well, read_request, request_text
from judged_run import make_run, rewrite
from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.core.tables import read_table
from medthink.judge.decisive import (
    DecisiveFinding,
    DecisiveForm,
    QuotedFinding,
    check_decisive,
    list_by_rule,
    read_decisive,
)
from medthink.judge.judged import load_judged, read_judgements, score_judged
from medthink.judge.judgement import Unjudged
from medthink.judge.session import JudgeSpec, judge_run
from medthink.judge.units import read_units
from medthink.readers.assignment import ReadingPlan, sheets_of_run
from medthink.readers.lists import write_lists
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from medthink.workflow.forms import ReplyFault
from small_benchmark import write_benchmark

FIRST = "sign WITHHELD findings 100"


def order(run, server=None, **changes):
    fields = {"run": run, "judges": ("server/a",), "what": ("omissions",), "splitter": "sentences"}
    return JudgeSpec(**(fields | {"base_urls": (server.url,) if server else ()} | changes))


def scores_of(run):
    (scores,) = score_judged(load_judged(run, Run.open(run).cases()), {})["omissions"]
    return scores


def test_a_text_is_scored_by_how_many_decisive_findings_it_mentions(tmp_path):
    run = make_run(tmp_path, cases=2, rationales=[f"There is {FIRST} here.", "The margin is WRONG."])
    twi = {
        "step1_per_image_findings": [FIRST],
        "step2_integrated_summary": "Nothing.",
        "step3_differential_reasoning": "",
    }
    rewrite(run, [{"prediction_twi": twi}, {}])
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    lists = read_decisive(run)
    assert [one.text for one in lists[100].findings] == [FIRST, "sign WITHHELD caption 100.1"]
    assert (lists[100].made_by, len(lists[100].digest)) == ("server/a", 64)
    scores = scores_of(run)
    assert scores.parts["rationale"]["mentioned"].value == pytest.approx(1 / 4)
    assert scores.parts["rationale"]["contradicted"].value == pytest.approx(2 / 4)
    assert scores.parts["summary"]["missed"].value == 1.0
    assert scores.parts["findings of images"]["mentioned"].value == pytest.approx(1 / 2)
    assert scores.decisive == 8


def test_lists_are_made_once_and_stay_when_judged_again(tmp_path):
    run = make_run(tmp_path, cases=2)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
        made = (run / "decisive.jsonl").read_bytes()
        assert len(server.bodies) == 4
        judge_run(order(run, server, judges=("server/b",)))
        assert len(server.bodies) == 6, "the second judge makes no lists"
    assert (run / "decisive.jsonl").read_bytes() == made


def test_a_list_made_from_other_texts_of_the_case_is_made_anew(tmp_path):
    run = make_run(tmp_path, cases=2)
    judge_run(order(run, judges=("baseline/rules",)))
    path = run / "decisive.jsonl"
    before = path.read_text()
    rows = [json.loads(line) for line in before.splitlines()]
    findings = [{"text": "of another text", "where": "findings"}]
    path.write_text("".join(json.dumps(row | {"reference": "0" * 64, "findings": findings}) + "\n" for row in rows))
    judge_run(order(run, judges=("baseline/rules",)))
    assert path.read_text() == before


def test_readers_may_edit_a_list_and_it_is_judged_by_the_edited_one(tmp_path):
    run = make_run(tmp_path, cases=1, rationales=["The mass is ring-shaped."])
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
        row = json.loads((run / "decisive.jsonl").read_text())
        row["findings"] = [{"text": "ring-shaped", "where": "findings"}]
        (run / "decisive.jsonl").write_text(json.dumps(row) + "\n")
        judge_run(order(run, server))
    assert read_decisive(run)[100].made_by == "edited"
    assert [unit.text for units in read_units(run).values() for unit in units.units] == ["ring-shaped"]
    assert scores_of(run).parts["rationale"]["mentioned"].value == 1.0
    (run / "decisive.jsonl").write_text('{"case": 100}\n')
    with pytest.raises(DataError, match=r"decisive.jsonl:1.*not a list of decisive findings"):
        read_decisive(run)


def test_findings_on_images_that_the_author_was_not_shown_are_apart_and_nobody_is_told(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=1, images=3)
    run = tmp_path / "run"
    condition = Condition(image_share=Fraction(1, 3))
    run_session(RunSpec(benchmark=bench, model="baseline/random", out=run, condition=condition))
    rewrite(run, [{"prediction_rationale": "The mass is large."}])
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
        data = read_request(request_text(server.bodies[-1]))[1]
    scores = scores_of(run)
    assert (scores.parts["rationale"]["missed"].n, scores.not_shown["missed"].n) == (2, 1)
    assert {unit["part"] for unit in data["units"]} == {"rationale"}
    write_lists(tmp_path / "lists", sheets_of_run(run), ReadingPlan(readers=("a", "b"), planted_share=1))
    rows = read_table(tmp_path / "lists/a.csv").rows
    assert {(row.cells["kind"], row.cells["part"]) for row in rows} == {("omission", "rationale")}


CASE_ENTRY = {"where": "findings", "stated": "WITHHELD findings 100", "used": "Disease A100"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"stated": "a mass"}, '"stated" is not a quotation'),
        ({"where": "caption 9"}, '"stated" is not a quotation'),
        ({"stated": ""}, '"stated" is not a quotation'),
        ({"used": "never said"}, '"used" is not a quotation'),
        ({"finding": "It is Disease A100"}, "is the diagnosis"),
        ({"finding": "other"}, "listed twice"),
    ],
)
def test_a_list_that_does_not_quote_the_expert_is_refused(change, problem, tmp_path):
    case = Run.open(make_run(tmp_path, cases=1)).cases()[100]
    good = [CASE_ENTRY | {"finding": "mass"}, CASE_ENTRY | {"finding": "other"}]

    def check(entries):
        return check_decisive(DecisiveForm("c", tuple(QuotedFinding(**entry) for entry in entries)), case)

    assert check(good) == (DecisiveFinding("mass"), DecisiveFinding("other"))
    fault = check([good[0] | change, good[1]])
    assert isinstance(fault, ReplyFault) and problem in fault.complaint
    assert isinstance(check(good[:1]), ReplyFault)


def test_a_model_that_cannot_make_a_list_leaves_it_to_the_rules(tmp_path):
    run = make_run(tmp_path, cases=1)

    def embellish(nonce, data, outside):
        if "stated" in data:
            return json.dumps({"call": nonce, "findings": [one | {"stated": "made up"} for one in list_well(data)]})
        return judge_well(nonce, data, outside)

    with JudgeServer(embellish) as server:
        judge_run(order(run, server))
    assert read_decisive(run)[100].made_by == "rules"


def test_a_list_whose_call_failed_is_made_in_the_next_session(tmp_path, monkeypatch):
    run = make_run(tmp_path, cases=1)

    async def fail(*_):
        return Unjudged("unsplit", "no reply")

    with JudgeServer(judge_well) as server:
        with monkeypatch.context() as broken:
            broken.setattr("medthink.judge.segmentation.DecisiveListMaker._list", fail)
            judge_run(order(run, server))
        assert [(row.state, row.why) for row in read_judgements(run)] == [("unjudged", "unsplit")]
        assert not (run / "decisive.jsonl").exists()
        assert [row.state for row in judge_run(order(run, server)).judgements] == ["ok"]


def test_rules_list_what_the_discussion_takes_up(tmp_path):
    case = Run.open(make_run(tmp_path, cases=1)).cases()[100]
    reference = msgspec.structs.replace(
        case.reference,
        findings="There is a right pleural effusion. There is cardiomegaly. There is a pneumothorax on the left.",
        discussion="The pleural effusion and the pneumothorax point to trauma.",
    )
    made = list_by_rule(msgspec.structs.replace(case, reference=reference))
    assert [one.text for one in made.findings] == [
        "There is a right pleural effusion.",
        "There is a pneumothorax on the left.",
    ]


def test_the_embedded_judge_takes_the_whole_path(tmp_path, capsys):
    run = make_run(tmp_path, cases=2)
    assert run_command(["judge", str(run), "--judge", "baseline/rules", "--kinds", "steps,omissions"]) == 0
    shown = capsys.readouterr().out
    assert "Omissions · baseline/rules" in shown and "Decisive findings" in shown
