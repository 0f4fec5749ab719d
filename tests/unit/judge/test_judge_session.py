"""A run is judged by models behind HTTP: matched by id, continued without asking again, never by itself."""

import base64
import json
import re
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from judge_server import JudgeServer, judge_well, read_request, request_text, step_verdict
from judged_run import RATIONALE, SUMMARY, make_discussions, make_run, rewrite
from ledger_rows import read_rows
from medthink.core.errors import DataError, Declined, LedgerError, OutsideError, UsageError
from medthink.judge.asking import for_judges
from medthink.judge.judged import load_judged, panel_votes, read_judgements, score_judged, write_judgements
from medthink.judge.judgement import DEFAULT_SIGHT, SIGHTS
from medthink.judge.session import JudgeSession, JudgeSpec, judge_run
from medthink.judge.units import UnitSource, read_units, split_source
from medthink.runs.ledger.lock import lock_run
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from small_benchmark import picture, write_benchmark


def order(run: Path, server: JudgeServer | None = None, **changes) -> JudgeSpec:
    urls = (server.url,) if server else ()
    return JudgeSpec(**({"run": run, "judges": ("server/good",), "base_urls": urls, "splitter": "sentences"} | changes))


def files(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in ("judgements.jsonl", "units.jsonl")}


def test_verdicts_are_kept_by_id_with_who_said_so_and_when(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        session = judge_run(order(run, server))
    first = session.judgements[0]
    assert [step.factual for step in first.verdicts] == ["supported", "contradicted", "supported"]
    assert first.verdicts[1].error_types == ("image_understanding",)
    assert [step.id for step in first.verdicts] == list(read_units(run)[first.key].ids)
    assert (first.state, first.judge, first.model, first.tries) == ("ok", "server/good", "good-2026", 1)
    assert first.cost_usd is None, "what has no price was not for nothing"
    assert first.judged_at and len(first.prompt) == 64 and first.setting.sees == SIGHTS
    for units in read_units(run).values():
        assert all(RATIONALE[unit.start : unit.end] == unit.text for unit in units.units)


def test_judging_again_asks_nothing_and_writes_the_same_bytes(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        assert judge_run(order(run, server)).calls_made == 3
        before = files(run)
        assert judge_run(order(run, server)).calls_made == 0
        assert len(server.bodies) == 3
    assert files(run) == before


def test_a_session_stopped_by_its_budget_is_continued_where_it_stopped(tmp_path):
    run = make_run(tmp_path, cases=5)
    with JudgeServer(judge_well) as server:
        stopped = judge_run(order(run, server, max_calls=2))
        assert stopped.stopped_by is not None
        scores = score_judged(load_judged(run, Run.open(run).cases()), {})
        assert (scores["steps"][0].coverage.judged, scores["steps"][0].coverage.missing) == (2, 3)
        assert not scores["steps"][0].coverage.is_complete
        assert judge_run(order(run, server, max_calls=2)).calls_made == 0
        assert judge_run(order(run, server)).calls_made == 3
        assert len(server.bodies) == 5
    assert {row.state for row in read_judgements(run)} == {"ok"}


def test_what_earlier_sessions_of_judging_cost_counts(tmp_path):
    run = make_run(tmp_path, cases=4)
    prices = tmp_path / "prices.toml"
    prices.write_text('date = "2026-01-01"\n[models]\n"server/good" = { input = 0.0, output = 200_000.0 }\n')
    with JudgeServer(judge_well) as server:
        # A reply of five tokens is a dollar, and one of all that are allowed two.
        words = {"prices": prices, "max_tokens": 10}
        paid = judge_run(order(run, server, max_calls=2, **words)).judgements
        assert [row.cost_usd for row in paid] == [1.0, 1.0]
        stopped = judge_run(order(run, server, max_usd=3.5, **words))
        assert stopped.calls_made == 0 and "--max-usd" in str(stopped.stopped_by)
        assert judge_run(order(run, server, max_usd=6.5, **words)).stopped_by is None


def test_two_processes_do_not_judge_one_run(tmp_path):
    run = make_run(tmp_path)
    with lock_run(run), pytest.raises(LedgerError, match="in use by process"):
        judge_run(order(run, judges=("baseline/rules",)))


def test_several_judges_sit_side_by_side_and_later_ones_join(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server, judges=("server/one", "server/two")))
        judge_run(order(run, server, judges=("server/three",), repeats=2))
    judge_run(order(run, judges=("baseline/rules",)))
    rows = read_judgements(run)
    assert {row.judge for row in rows} == {"server/one", "server/two", "server/three", "baseline/rules"}
    assert len(rows) == 3 * (1 + 1 + 2 + 1)
    labels = [scores.label for scores in score_judged(load_judged(run, Run.open(run).cases()), {})["steps"]]
    assert any(label.startswith("panel") for label in labels)
    assert any("smoke test" in label for label in labels)


def test_how_far_judges_differ_is_told_unit_by_unit(tmp_path):
    run = make_run(tmp_path)

    def lenient(nonce, data, _):
        verdicts = [
            step_verdict(unit, factual="unverifiable" if "WRONG" in unit["text"] else "supported")
            for unit in data["units"]
        ]
        return json.dumps({"call": nonce, "verdicts": verdicts})

    with JudgeServer(judge_well) as strict, JudgeServer(lenient) as mild:
        judge_run(order(run, strict, judges=("server/one",)))
        judge_run(order(run, mild, judges=("server/two",), repeats=2))
    judge_run(order(run, judges=("baseline/rules",)))
    judged = load_judged(run, Run.open(run).cases())
    for units in panel_votes(judged).values():
        assert [one.disagreement for one in units] == [0.0, 1.0, 0.0]
    scores = score_judged(judged, {})
    assert scores.disagreement["steps"].value == pytest.approx(1 / 3)
    panel = next(one for one in scores["steps"] if one.label.startswith("panel"))
    assert panel.coverage.judged == 3, "one tie takes nothing from the other steps"
    assert (panel.steps, panel.ties) == (6, 3)
    assert panel.sound_if_right.every_step.n + panel.sound_if_wrong.every_step.n == 0, "a tie leaves open what is sound"


def test_the_same_judge_with_and_without_images_holds_two_seats(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server, sees=DEFAULT_SIGHT))
        blind = len(server.bodies)
        judge_run(order(run, server))
        assert not any("image_url" in json.dumps(body) for body in server.bodies[:blind])
        assert all("image_url" in json.dumps(body) for body in server.bodies[blind:])
    assert len({row.seat for row in read_judgements(run)}) == 2


def test_only_what_is_in_sight_is_sent(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server, sees=("history", "findings")))
        text = request_text(server.bodies[0])
    assert "WITHHELD findings 100" in text
    assert "WITHHELD discussion" not in text
    assert "WITHHELD caption" not in text
    data = read_request(text)[1]
    assert "Disease" not in json.dumps(data["case"]), "the author's own answer is no evidence"
    assert set(data["case"]) == {"history", "findings"}


def test_no_request_to_a_judge_names_the_model_the_condition_or_the_case(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=2, images=2)
    run = tmp_path / "CANARY-run"
    condition = Condition(image_order="reversed", option_order="seeded", model_seed=7654, seed=31337)
    run_session(RunSpec(benchmark=bench, model="baseline/random", out=run, condition=condition))
    rewrite(run, [{"prediction_rationale": RATIONALE}] * 2)
    hidden = ["CANARY", "baseline", "random", "reversed", "seeded", "7654", "31337", "Case number", "case001", "i100x"]
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server, splitter=None, sees=SIGHTS))
        assert len(server.bodies) == 4
        for body in server.bodies:
            assert not [word for word in [*hidden, "ICD", "WITHHELD sub"] if word in json.dumps(body)]
    # Whoever cuts a rationale sees that rationale and nothing of the case.
    cuts = [request_text(body) for body in server.bodies if "rationale" in read_request(request_text(body))[1]]
    assert len(cuts) == 2
    assert not [text for text in cuts if "WITHHELD" in text or "Disease" in text or "patient, number" in text]


def test_a_judge_is_never_the_judged_model_unless_allowed(tmp_path):
    run = make_run(tmp_path)
    manifest = json.loads((run / "run.json").read_text())
    manifest["model"] = "openai/clever"
    manifest["progress"]["reported_models"] = ["clever-2026"]
    (run / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="would judge itself"):
        judge_run(order(run, judges=("openai-chat/clever",)))
    with JudgeServer(judge_well, model="clever-2026") as server:
        with pytest.raises(Declined, match="reports that it is clever-2026"):
            judge_run(order(run, server))
        assert judge_run(order(run, server, allow_self=True)).judgements[0].state == "ok"


def test_servers_that_report_no_name_are_not_one_model(tmp_path):
    run = make_run(tmp_path)
    manifest = json.loads((run / "run.json").read_text())
    manifest["progress"]["reported_models"] = [""]
    (run / "run.json").write_text(json.dumps(manifest))
    with JudgeServer(judge_well, model="") as server:
        assert judge_run(order(run, server)).judgements[0].state == "ok"


def test_the_judge_cuts_the_steps_itself_and_all_later_judges_keep_its_cut(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server, splitter=None))
        cut = (run / "units.jsonl").read_bytes()
        assert {one.splitter for one in read_units(run).values()} == {"server/good"}
        judge_run(order(run, server, judges=("server/other",), splitter=None))
        assert (run / "units.jsonl").read_bytes() == cut
        with pytest.raises(UsageError, match="refer to those steps"):
            judge_run(order(run, server, splitter="sentences"))
        rewrite(run, [{"prediction_rationale": text} for text in ("It is new.", RATIONALE, RATIONALE)])
        with pytest.raises(UsageError, match="were segmented by server/good, and some texts are not segmented yet"):
            judge_run(order(run, server, judges=("server/other",), splitter=None))
        judge_run(order(run, server, judges=("server/other",), splitter="server/good"))
    assert {one.splitter for one in read_units(run).values()} == {"server/good"}


def test_a_judge_sees_the_whole_case_numbered_as_the_judged_model_saw_it(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=1, images=3)
    condition = Condition(image_share=Fraction(2, 3), image_order="reversed", option_order=1)
    run_session(RunSpec(benchmark=bench, model="baseline/random", out=tmp_path / "run", condition=condition))
    rewrite(tmp_path / "run", [{"prediction_rationale": RATIONALE}])
    with JudgeServer(judge_well) as server:
        (row,) = judge_run(order(tmp_path / "run", server, sees=SIGHTS)).judgements
        (body,) = server.bodies
    data = read_request(request_text(body))[1]
    assert list(data["case"]["captions"].values()) == [f"WITHHELD caption 100.{k}" for k in (2, 1, 3)]
    assert data["case"]["options"]["B"] == "Disease A100"
    assert data["author"]["images_shown"] == 2
    urls = [part["image_url"]["url"] for part in body["messages"][1]["content"] if part["type"] == "image_url"]
    assert [base64.b64decode(url.split(",")[1]) for url in urls] == [picture(k) for k in (10_002, 10_001, 10_003)]
    assert row.images == 3


def test_the_evidence_does_not_depend_on_what_the_judged_model_was_shown(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=1, images=3)
    cases = []
    for share in (Fraction(0), Fraction(1)):
        run = tmp_path / f"run{share}"
        condition = Condition(image_share=share)
        run_session(RunSpec(benchmark=bench, model="baseline/random", out=run, condition=condition))
        rewrite(run, [{"prediction_rationale": RATIONALE}])
        with JudgeServer(judge_well) as server:
            (row,) = judge_run(order(run, server, sees=SIGHTS)).judgements
            (body,) = server.bodies
        cases.append(read_request(request_text(body))[1]["case"])
        assert json.dumps(body).count('image_url"}') + json.dumps(body).count('"type": "image_url"') >= 3
        assert row.images == 3
    assert cases[0] == cases[1]
    assert len(cases[0]["captions"]) == 3


def test_the_judge_sees_the_answer_and_the_whole_rationale(tmp_path):
    run = make_run(tmp_path, cases=1)
    rewrite(run, [{"prediction": "C", "letter_shown": "C"}])
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
        data = read_request(request_text(server.bodies[0]))[1]
    assert data["author"]["answer"] == "C: Disease C100"
    assert "«2» The margin is WRONG here. «/2»" in data["author"]["text"]["rationale"]


def test_a_cut_that_is_not_the_rationale_falls_back_to_sentences_and_says_so(tmp_path):
    run = make_run(tmp_path, cases=1)

    def embellish(nonce, data, outside):
        if "rationale" in data:
            return json.dumps({"call": nonce, "steps": ["The lesion is small.", "All is well."]})
        return judge_well(nonce, data, outside)

    with JudgeServer(embellish) as server:
        judge_run(order(run, server, splitter=None))
    (units,) = read_units(run).values()
    assert units.is_fallback and "does not keep to the text" in units.detail
    assert len(units.units) == 3
    assert score_judged(load_judged(run, Run.open(run).cases()), {})["steps"][0].coverage.fallback_splits == 1


def test_more_than_fifteen_steps_are_a_state_and_not_a_cut(tmp_path):
    run = make_run(tmp_path, cases=2, rationales=[" ".join(f"Step {k} is so." for k in range(16)), RATIONALE])
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
        assert len(server.bodies) == 1
    many, fine = read_judgements(run)
    assert (many.state, many.why, many.verdicts) == ("unjudged", "too_many", ())
    assert fine.state == "ok"
    texts = {"background": "It is so. " * 121}
    assert split_source(UnitSource(run="r", case=1, sample=0, what="discussion", parts=texts)).state == "too_many"


def test_an_answer_without_words_is_nothing_to_judge_and_not_sound(tmp_path):
    run = make_run(tmp_path, cases=3, rationales=["", " : ", RATIONALE])
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    assert [row.state for row in read_judgements(run)] == ["absent", "absent", "ok"]
    judged = load_judged(run, Run.open(run).cases())
    rights = dict.fromkeys(judged.rights, True)
    (scores,) = score_judged(msgspec.structs.replace(judged, rights=rights), {})["steps"]
    assert scores.coverage.absent == 2
    assert scores.sound_if_right.every_step.value == 0
    assert scores.sound_if_right.every_step.n == 3


def test_an_answer_that_is_not_there_is_neither_right_nor_wrong(tmp_path):
    run = make_run(tmp_path, cases=2)
    judge_run(order(run, judges=("baseline/rules",)))
    rewrite(run, [{"prediction": "A"}, {"prediction": None}])
    assert load_judged(run, Run.open(run).cases()).rights == {(100, 0): True, (101, 0): None}


def test_discussions_are_judged_by_sentence_section_and_dimension(tmp_path):
    run = make_discussions(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    (scores,) = score_judged(
        load_judged(run, Run.open(run).cases()), {100: {"modality": ("CT",)}, 101: {"modality": ("CT",)}}
    )["discussion"]
    assert scores.sentences == 24
    assert scores.labels["correct"].value == 0.5
    assert scores.by_section["outcome"]["incorrect"].value == 0.5
    assert scores.total.value == 5
    assert scores.levels["imaging_findings"] == {0: 0, 1: 2, 2: 0}
    assert [(one.value, one.cases) for one in scores.slices] == [("CT", 2)]


def test_missing_sections_are_counted_and_not_scored(tmp_path):
    run = make_discussions(tmp_path, sections={"background": "It is so.", "outcome": "  "})
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    (scores,) = score_judged(load_judged(run, Run.open(run).cases()), {})["discussion"]
    assert scores.sentences == 2
    assert scores.missing_sections["outcome"] == 2
    assert scores.missing_sections["background"] == 0


def test_findings_and_summary_are_judged_by_statement(tmp_path):
    run = make_run(tmp_path, cases=2)
    twi = {
        "step1_per_image_findings": ["A mass. No effusion.", None],
        "step2_integrated_summary": "A mass.",
        "step3_differential_reasoning": "So.",
    }
    rewrite(run, [{"prediction_twi": twi}] * 2)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server, what=("findings",)))
    (scores,) = score_judged(load_judged(run, Run.open(run).cases()), {})["findings"]
    assert scores.statements == 6
    assert scores.images["supported"].n == 4
    assert scores.summary["supported"].n == 2
    assert next(iter(read_units(run).values())).missing == ("image 2",)


def test_units_of_one_kind_stay_when_another_is_judged(tmp_path):
    run = make_run(tmp_path, cases=1)
    rewrite(run, [{"prediction_twi": SUMMARY}])
    for what in ("steps", "findings"):
        judge_run(order(run, judges=("baseline/rules",), what=(what,)))
    assert {key[2] for key in read_units(run)} == {"steps", "findings"}
    scores = score_judged(load_judged(run, Run.open(run).cases()), {})
    assert scores["steps"][0].coverage.is_complete and scores["findings"][0].coverage.is_complete


def test_nothing_to_judge_another_benchmark_and_swapped_images_are_refused(tmp_path):
    run = make_run(tmp_path)
    with pytest.raises(UsageError, match="no discussion to judge"):
        judge_run(order(run, judges=("baseline/rules",), what=("discussion",)))
    with pytest.raises(UsageError, match="is not a judge"):
        judge_run(order(run, judges=("baseline/longest",)))
    swapped = tmp_path / "swapped"
    condition = Condition(swap_images=True)
    run_session(RunSpec(benchmark=tmp_path / "bench", model="baseline/random", out=swapped, condition=condition))
    with pytest.raises(UsageError, match="images of other cases"):
        judge_run(order(swapped, judges=("baseline/rules",)))
    rows = (tmp_path / "bench/test.jsonl").read_text()
    (tmp_path / "bench/test.jsonl").write_text(rows.replace("with pain", "without pain"))
    with pytest.raises(UsageError, match="its fingerprint differs"):
        judge_run(order(run, judges=("baseline/rules",)))


def states(session: JudgeSession) -> dict[int, str]:
    return {one.case: one.state for one in session.judgements}


def test_an_image_that_changed_since_the_run_leaves_its_case_alone_unjudged(tmp_path):
    run = make_run(tmp_path)
    (tmp_path / "bench/images/case00101/i101x1.jpg").unlink()
    with JudgeServer(judge_well) as server:
        # Whoever sees no image does not mind.
        assert set(states(judge_run(order(run, server, sees=DEFAULT_SIGHT))).values()) == {"ok"}
        session = judge_run(order(run, server, sees=SIGHTS, judges=("server/other",)))
    others = sorted((one for one in session.judgements if one.judge == "server/other"), key=lambda one: one.case)
    assert [(one.case, one.state) for one in others] == [(100, "ok"), (101, "unjudged"), (102, "ok")]
    assert others[1].detail == "its images have changed since the run was made"
    (run / "cases.json").unlink()
    with pytest.raises(UsageError, match="its fingerprint differs"):
        judge_run(order(run, judges=("baseline/rules",)))


def test_a_broken_image_leaves_its_case_alone_unjudged_until_it_is_mended(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=3, images=2)
    broken = bench / "images/case00101/i101x2.jpg"
    broken.write_bytes(b"no picture")
    # The model is shown one image of the two, the judge both.
    run_session(
        RunSpec(benchmark=bench, model="baseline/random", out=tmp_path / "run", condition=Condition(image_share=0.0))
    )
    rewrite(tmp_path / "run", [{"prediction_rationale": RATIONALE, "state": "ok"}] * 3)
    with JudgeServer(judge_well) as server:
        session = judge_run(order(tmp_path / "run", server, sees=SIGHTS))
        assert states(session) == {100: "ok", 101: "unjudged", 102: "ok"}
        (failed,) = [one for one in session.judgements if one.state == "unjudged"]
        assert (failed.why, failed.tries, "i101x2.jpg" in failed.detail) == ("failed", 0, True)
        assert len(server.bodies) == 2


def test_a_judge_is_checked_before_its_first_call_and_not_where_nothing_is_left_to_ask(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    # Nothing is left to ask: nobody minds that the server is gone.
    assert judge_run(order(run, server)).calls_made == 0
    with pytest.raises(OutsideError, match="no server answers at"):
        judge_run(order(run, server, judges=("server/other",)))
    assert read_rows(run / "judge.sqlite", "SELECT count(*) FROM calls WHERE state <> 'done'") == [(0,)]


def test_settings_that_a_judge_does_not_take_are_refused_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk")
    run = make_run(tmp_path)
    with pytest.raises(UsageError, match="needs a price"):
        judge_run(order(run, judges=("server/good",), base_urls=("http://127.0.0.1:9/v1",), max_usd=1.0))
    with pytest.raises(UsageError, match="max-tokens"):
        judge_run(order(run, judges=("anthropic/claude-opus-4-6",)))


def test_judgements_of_a_run_that_changed_since_are_refused(tmp_path):
    run = make_run(tmp_path)
    judge_run(order(run, judges=("baseline/rules",)))
    rows = read_judgements(run)
    write_judgements(run, [msgspec.structs.replace(row, verdicts=row.verdicts[::-1]) for row in rows])
    with pytest.raises(DataError, match=r"jsonl:1: .*do not belong to the run's units"):
        load_judged(run, Run.open(run).cases())
    write_judgements(run, rows)
    assert load_judged(run, Run.open(run).cases()).judgements == tuple(rows)
    (run / "units.jsonl").unlink()
    with pytest.raises(DataError, match="do not belong to the run's units"):
        load_judged(run, Run.open(run).cases())


def test_a_rerun_rationale_is_cut_and_judged_anew(tmp_path):
    run = make_run(tmp_path, cases=1)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
        rewrite(run, [{"prediction_rationale": "Something else. And more."}])
        judge_run(order(run, server))
        assert len(server.bodies) == 2
    assert [len(row.verdicts) for row in load_judged(run, Run.open(run).cases()).judgements] == [2]


def test_another_run_s_judge_ledger_replays(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("run.json", "predictions.jsonl"):
        (copy / name).write_bytes((run / name).read_bytes())
    session = judge_run(order(copy, judges=(f"replay/{run}",)))
    assert [row.state for row in session.judgements] == ["ok"] * 3
    assert session.judgements[0].verdicts == read_judgements(run)[0].verdicts


def test_every_call_is_in_the_judge_s_own_ledger(tmp_path):
    run = make_run(tmp_path)
    before = (run / "ledger.sqlite").read_bytes()
    with JudgeServer(judge_well) as server:
        judge_run(order(run, server))
    calls = read_rows(run / "judge.sqlite", "SELECT kind, state, count(*) FROM calls GROUP BY 1, 2")
    assert calls == [("steps", "done", 3)]
    assert (run / "ledger.sqlite").read_bytes() == before


def test_unjudged_is_asked_again_only_when_told_and_then_by_new_calls(tmp_path):
    run = make_run(tmp_path, cases=2)
    with JudgeServer(lambda *_: "no") as server:
        judge_run(order(run, server))
        assert len(server.bodies) == 6
        server.answer = judge_well
        assert judge_run(order(run, server)).calls_made == 0
        session = judge_run(order(run, server, retry_unjudged=True))
        assert session.calls_made == 2
        assert [(row.state, row.round) for row in session.judgements] == [("ok", 1)] * 2
        before = files(run)
        assert judge_run(order(run, server)).calls_made == 0, "the round is known again"
        assert judge_run(order(run, server, retry_unjudged=True)).calls_made == 0, "what is judged is not asked again"
    assert files(run) == before


@pytest.mark.parametrize(
    ("judged", "spec"),
    [
        ("openai/gpt-5.2", "inspect/openai/gpt-5.2"),
        ("openai/gpt-5.2", "openai/GPT-5.2-2026-01-15"),
        ("anthropic/claude-opus-4-6", "server/claude-opus-4.6"),
        ("server/Qwen/Qwen3-VL-8B-Instruct", "server/qwen3-vl-8b"),
    ],
)
def test_a_model_is_known_by_another_spelling_of_its_name_and_as_splitter(judged, spec, tmp_path):
    run = make_run(tmp_path)
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"model": judged}))
    with pytest.raises(UsageError, match="would judge itself"):
        judge_run(order(run, judges=(spec,)))
    with pytest.raises(UsageError, match="would judge itself"):
        judge_run(order(run, judges=("baseline/rules",), splitter=spec))


def test_models_that_differ_by_more_than_spelling_are_two(tmp_path):
    run = make_run(tmp_path)
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"model": "server/gpt-5.2"}))
    with JudgeServer(judge_well) as server:
        assert judge_run(order(run, server, judges=("server/gpt-5.2-mini",))).judgements[0].state == "ok"


def test_a_server_that_counts_too_few_tokens_for_images_is_pointed_out(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        doubts = judge_run(order(run, server, sees=SIGHTS)).image_doubts
    assert (doubts.replies, doubts.doubtful) == (3, 3)


def test_a_judge_is_shown_the_images_unless_it_is_the_embedded_one_or_told_otherwise():
    spec = JudgeSpec(run=Path("run"), judges=("server/good", "baseline/rules"))
    assert spec.setting_of("server/good").sees == SIGHTS
    assert spec.setting_of("baseline/rules").sees == DEFAULT_SIGHT
    assert msgspec.structs.replace(spec, sees=DEFAULT_SIGHT).setting_of("server/good").sees == DEFAULT_SIGHT


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("unsupported: image 1 is 9000×10, too much → set --max-side 8000 or less", "→ judge with --without-images"),
        ("lower --image-share, --max-side or --max-bytes", "judge with --without-images"),
        ("choose another --image-detail, or leave it out", "judge with --without-images"),
        ("lower --max-tokens, or --image-share", "lower --max-tokens, or judge with --without-images"),
        ("lower --max-tokens, or use a server", "lower --max-tokens, or use a server"),
    ],
)
def test_a_judges_remedy_names_flags_of_judge(said, told):
    assert for_judges(said).endswith(told)
    assert not re.search("--(max-side|max-bytes|image)", for_judges(said))


def test_a_judge_that_cannot_take_the_images_is_told_what_judge_can_do(tmp_path):
    run = make_run(tmp_path)
    with JudgeServer(judge_well) as server:
        server.fails, server.complaint = (lambda _body: True), "too many images: at most 1 image is supported"
        session = judge_run(order(run, server, sees=SIGHTS))
    details = {one.detail for one in session.judgements if one.state != "ok"}
    assert details and all("--without-images" in one and "--max-side" not in one for one in details)
