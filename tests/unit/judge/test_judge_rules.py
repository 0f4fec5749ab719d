"""The embedded judge: deterministic, offline, and plainly a smoke test."""

import asyncio
import json

import msgspec
import pytest

from judge_server import read_request
from medthink.core.errors import UsageError
from medthink.judge import prompts
from medthink.judge.judgement import SIGHTS, Evidence, parse_sight
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import prompt_version, verdict_prompt
from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, SECTIONS, SEVERITIES, SUPPORTS, WEIGHTS, load_rubric
from medthink.judge.units import UnitSource, split_source
from medthink.models.request import Request
from medthink.runs.calls.forms import RulesAnswerer
from medthink.workflow.forms import PromptFiles, ReplyFault

EVIDENCE = Evidence(
    options={"A": "Pneumothorax", "B": "Pleural effusion"},
    findings="There is a right pleural effusion. No pneumothorax.",
    diagnosis="Pleural effusion",
)


def judge(text: str, what: str = "steps", write=lambda reply: reply):
    source = UnitSource(run="r", case=1, sample=0, what=what, parts={"rationale": text}, findings=FINDINGS[what])
    units = split_source(source)
    prompt = verdict_prompt(units, EVIDENCE, source)
    reply = asyncio.run(RulesAnswerer().answer(prompt, Request(parts=()), lambda _: None))
    return KINDS[what].read_reply(write(reply.text), prompt.call, units, EVIDENCE.names())


FINDINGS = dict.fromkeys(KINDS, ()) | {"omissions": (("There is a right pleural effusion.", True),)}
JUDGED_ALONE = [what for what, kind in KINDS.items() if not kind.is_pairwise]


@pytest.mark.parametrize("what", JUDGED_ALONE)
def test_a_verdict_without_a_reason_is_refused_in_every_kind(what):
    def blank(reply):
        form = json.loads(reply)
        for verdict in (form.get("education") or form["verdicts"])[:1]:
            verdict["reason"] = " "
        return json.dumps(form)

    assert not isinstance(judge("There is a pleural effusion.", what), ReplyFault)
    assert judge("There is a pleural effusion.", what, blank).complaint.endswith("has no reason")


@pytest.mark.parametrize("what", JUDGED_ALONE)
@pytest.mark.parametrize(
    "frame",
    ["Here is my assessment.\n\n{}", "```json\n{}\n```", "Sure:\n```json\n{}\n```\nDone.", "{} Done."],
)
def test_a_form_is_read_whatever_is_written_around_it(what, frame):
    plain = judge("There is a pleural effusion.", what)
    assert judge("There is a pleural effusion.", what, lambda reply: frame.replace("{}", reply)) == plain


def test_a_form_in_the_thinking_is_no_verdict():
    told = judge("There is a pleural effusion.", write=lambda reply: f"<think>{reply}</think> I cannot tell.")
    assert isinstance(told, ReplyFault)


@pytest.mark.parametrize(
    ("text", "factual"),
    [
        ("The diagnosis is pleural effusion.", "supported"),
        ("The diagnosis is pneumothorax.", "contradicted"),
        ("Not pneumothorax, since the lung is expanded.", "supported"),
        ("Pleural effusion is ruled out.", "contradicted"),
        ("This is a matter of taste.", "unverifiable"),
    ],
)
def test_steps_by_rule(text, factual):
    (verdict,) = judge(text)
    assert verdict.factual == factual
    assert bool(verdict.error_types) == (factual == "contradicted")


def test_findings_are_compared_with_the_expert_s():
    verdicts = judge("There is a right pleural effusion. There is a pneumothorax.", "findings")
    assert [verdict.support for verdict in verdicts] == ["supported", "contradicted"]


def test_the_rubric_has_a_meaning_for_every_word_and_an_example_for_every_level():
    rubric = load_rubric()
    for section, words in {
        "factual": SUPPORTS,
        "weight": WEIGHTS,
        "severity": SEVERITIES,
        "error types": ERROR_TYPES,
        "omissions": ("mentioned", "missed", "contradicted"),
        "preference": ("first", "second", "tie"),
    }.items():
        text = rubric.section(section)
        assert not [word for word in words if f"**{word.replace('_', ' ')}**" not in text], section
    blocks = rubric.section("education").split("\n\n**")[1:]
    assert [block.split("**")[0].lower().replace(" ", "_") for block in blocks] == list(DIMENSIONS)
    for block in blocks:
        levels = dict(line[2:].split(": ", 1) for line in block.splitlines()[1:4])
        assert list(levels) == ["2", "1", "0"]
        assert all('*"' in level for level in levels.values()), "an example"
        assert "Absent:" in levels["0"] and "Wrong:" in levels["0"]


@pytest.mark.parametrize(
    ("what", "sections"),
    [
        ("steps", ("introduction", "factual", "weight", "severity", "error types")),
        ("discussion", ("introduction", "factual", "education")),
        ("findings", ("introduction", "factual")),
        ("omissions", ("omissions",)),
        ("preference", ("introduction", "education", "preference")),
    ],
)
def test_every_prompt_carries_its_part_of_the_rubric(what, sections):
    source = UnitSource(run="r", case=1, sample=0, what=what, parts={"background": "So."})
    words = " ".join(part for part in verdict_prompt(split_source(source), EVIDENCE, source).parts)
    for name in SECTIONS:
        assert (load_rubric().section(name) in words) == (name in sections)
    assert "{{" not in words


def test_the_version_of_a_prompt_is_of_its_words():
    assert len({prompt_version(kind) for kind in ("split", "steps", "discussion", "findings")}) == 4


def test_a_word_changed_in_the_rubric_or_in_a_prompt_is_another_version(monkeypatch):
    before, make, read = prompt_version("steps"), prompt_version.__wrapped__, PromptFiles.read
    assert make("steps") == before
    with monkeypatch.context() as changed:
        rubric = msgspec.structs.replace(load_rubric(), page="it matters.")
        changed.setattr(prompts, "load_rubric", lambda: rubric)
        assert make("steps") != before
    for name in ("system", "steps"):
        with monkeypatch.context() as changed:
            changed.setattr(PromptFiles, "read", lambda it, one, name=name: "other" if one == name else read(it, one))
            assert make("steps") != before


def test_the_whole_text_is_shown_with_every_unit_marked_and_the_answer_beside_it():
    text = "First, the mass is large. It «2» enhances. So it is a sarcoma."
    source = UnitSource(run="r", case=1, sample=0, what="steps", parts={"rationale": text}, answer="B: Sarcoma")
    units = split_source(source)
    data = read_request(" ".join(verdict_prompt(units, EVIDENCE, source).parts))[1]
    marked = data["author"]["text"]["rationale"]
    assert marked == "«1» First, the mass is large. «/1» «2» It ‹2› enhances. «/2» «3» So it is a sarcoma. «/3»"
    assert data["author"]["answer"] == "B: Sarcoma"
    assert [(unit["number"], unit["text"]) for unit in data["units"]][1] == (2, "It «2» enhances.")


def test_sight_is_named_part_by_part():
    assert parse_sight("findings,history") == ("history", "findings")
    assert parse_sight(",".join(SIGHTS)) == SIGHTS
    with pytest.raises(UsageError, match="gold"):
        parse_sight("gold")
    assert json.dumps(EVIDENCE.data())
    assert set(EVIDENCE.names()) == {"options", "findings", "diagnosis", "general knowledge", "nothing"}
