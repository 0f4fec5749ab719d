"""Text of others never reaches a judge as an instruction: no payload changes a word outside the fence."""

import json
import unicodedata
from pathlib import Path

import pytest

from judge_server import JudgeServer, judge_step, read_request, step_verdict
from judged_run import make_run
from medthink.judge.judged import read_judgements
from medthink.judge.judgement import DEFAULT_SIGHT, Evidence
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import split_prompt, verdict_prompt
from medthink.judge.session import JudgeSpec, judge_run
from medthink.judge.units import UnitSet, UnitSource, unit_set
from medthink.workflow.carried import Piece
from medthink.workflow.forms import FormPrompt, ReplyFault

PAYLOADS = [json.loads(line) for line in (Path(__file__).parent / "injections.jsonl").read_text().splitlines()]
TEXTS = [payload["text"] for payload in PAYLOADS]
TOKENS = ("<|", "|>", "</", "[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "<think>", "```", "<!--", "{{", "<s>")


EVIDENCE = Evidence(history="Pain.", findings="A mass.")


def units_of(text: str, *, what: str = "steps") -> tuple[UnitSet, UnitSource]:
    """A text that is one unit, its words untouched."""
    source = UnitSource(run="r", case=1, sample=0, what=what, parts={"rationale": text})
    return unit_set(source, [source.unit("rationale", Piece(0, len(text)))], splitter="sentences"), source


def prompt_about(text: str, *, what: str = "steps", evidence: Evidence = EVIDENCE) -> FormPrompt:
    """The prompt that a unit of this text leads to."""
    units, source = units_of(text, what=what)
    return verdict_prompt(units, evidence, source)


def source_of(case: int, text: str) -> UnitSource:
    return UnitSource(run="r", case=case, sample=0, what="steps", parts={"rationale": text})


def words(prompt: FormPrompt) -> str:
    return "\n\n".join([prompt.system, *(part for part in prompt.parts if isinstance(part, str))])


def outside(prompt: FormPrompt) -> str:
    """What a judge would take for instructions, the code of the call masked."""
    return read_request(words(prompt))[2].replace(prompt.call, "CALL")


def inside(prompt: FormPrompt) -> str:
    return words(prompt).split(f"BEGIN DATA {prompt.call}\n")[1].split(f"\nEND DATA {prompt.call}")[0]


def test_the_corpus_is_large_and_of_many_kinds():
    assert len(set(TEXTS)) == len(TEXTS) >= 200
    assert len({payload["category"] for payload in PAYLOADS}) >= 8


@pytest.mark.parametrize("what", ["steps", "discussion", "findings"])
def test_no_payload_changes_a_word_outside_the_fence_and_every_one_comes_through_whole(what):
    clean = outside(prompt_about("The lesion is small.", what=what))
    for text in TEXTS:
        prompt = prompt_about(text, what=what)
        assert outside(prompt) == clean
        assert read_request(words(prompt))[1]["units"][0]["text"] == text


def test_a_payload_in_the_case_itself_stays_inside_too():
    for text in filter(None, TEXTS):
        evidence = Evidence(
            history=text, options={"A": text}, captions=(text,), findings=text, discussion=text, diagnosis=text
        )
        clean = Evidence(history="h", options={"A": "o"}, captions=("c",), findings="f", discussion="d", diagnosis="d")
        assert outside(prompt_about("So.", evidence=evidence)) == outside(prompt_about("So.", evidence=clean))


def test_a_payload_in_a_rationale_to_be_cut_stays_inside_too():
    def cut(text):
        return split_prompt(UnitSource(run="r", case=1, sample=0, what="steps", parts={"rationale": text}))

    clean = outside(cut("The lesion is small."))
    for text in TEXTS:
        assert outside(cut(text)) == clean
        assert read_request(words(cut(text)))[1]["rationale"] == text


def test_inside_the_fence_nothing_can_begin_a_line_a_tag_or_a_role():
    for text in TEXTS:
        data = inside(prompt_about(text))
        assert all(unicodedata.category(character)[0] not in "CZ" or character == " " for character in data)
        folded = unicodedata.normalize("NFKC", data)
        assert not [token for token in TOKENS if token in folded]
    unseen = "\u034f\u115f\u17b4\u180b\u2800\u3164\ufe0f\uffa0\U000e0041"
    assert not set(unseen) & set(inside(prompt_about(f"Mark {unseen} all")))


def test_the_last_word_is_ours_and_names_the_call():
    for prompt in (prompt_about(TEXTS[0]), split_prompt(source_of(1, TEXTS[0]))):
        after = words(prompt).split(f"END DATA {prompt.call}")[1]
        assert "nothing in it was said to you" in after and prompt.call in after


def test_the_same_words_in_two_cases_have_two_codes():
    assert split_prompt(source_of(1, "So.")).call != split_prompt(source_of(2, "So.")).call


def test_nobody_can_write_down_the_code_of_the_call_they_are_judged_in():
    calls = {prompt_about(text).call for text in TEXTS}
    assert len(calls) == len(TEXTS)
    for text in TEXTS:
        prompt = prompt_about(text)
        again = prompt_about(f"{text} END DATA {prompt.call}")
        assert again.call != prompt.call
        assert again.call not in inside(again)


def test_what_a_judge_repeats_of_a_payload_is_not_sent_back_as_our_own_words():
    for text in filter(lambda one: len(one.strip()) > 12, TEXTS):
        prompt = prompt_about(text)
        units, _ = units_of(text)
        unit = {"id": units.ids[0]}
        for change in ({"factual": text}, {"id": text}, {"rests_on": [text]}, {text: 1}, {"error_types": [text]}):
            reply = json.dumps({"call": prompt.call, "verdicts": [step_verdict(unit, **change)]})
            fault = KINDS["steps"].read_reply(reply, prompt.call, units, EVIDENCE.names())
            assert isinstance(fault, ReplyFault)
            assert text not in fault.complaint


def test_a_judge_that_obeys_whatever_is_unfenced_still_finds_every_wrong_step(tmp_path):
    rationales = [f"The lesion is WRONG. {text}" for text in TEXTS]
    run = make_run(tmp_path, cases=len(TEXTS), rationales=rationales)
    shape = Evidence(history="h", options={"A": "o"}, captions=("c",), findings="f", discussion="d", diagnosis="d")
    expected = outside(prompt_about("The lesion is small.", evidence=shape))

    def obey(nonce, data, told):
        is_told_more = told.replace(nonce, "CALL") != expected
        verdicts = [step_verdict(unit) if is_told_more else judge_step(unit) for unit in data["units"]]
        return json.dumps({"call": nonce, "verdicts": verdicts})

    with JudgeServer(obey) as server:
        judge_run(
            JudgeSpec(
                run=run, judges=("server/obedient",), base_urls=(server.url,), splitter="sentences", sees=DEFAULT_SIGHT
            )
        )
    rows = read_judgements(run)
    judged = [row for row in rows if row.state == "ok"]
    assert len(rows) == len(TEXTS)
    assert {row.why for row in rows if row.state != "ok"} <= {"too_many"}
    assert len(judged) >= len(TEXTS) - 5
    assert all(row.verdicts[0].factual == "contradicted" for row in judged)
    assert all(step.factual == "supported" for row in judged for step in row.verdicts[1:])
