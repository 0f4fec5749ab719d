"""The embedded judge: deterministic, offline, and plainly a check of the wiring."""

import asyncio
import json

import msgspec
import pytest

from medthink.core.errors import UsageError
from medthink.judge import prompts
from medthink.judge.asking import read_verdicts
from medthink.judge.evidence import SIGHTS, Evidence, parse_sight
from medthink.judge.prompts import prompt_version, verdict_prompt
from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, load_rubric
from medthink.judge.rules import RulesJudge
from medthink.judge.units import Source, split_source
from medthink.models.request import Request

EVIDENCE = Evidence(
    options={"A": "Pneumothorax", "B": "Pleural effusion"},
    findings="There is a right pleural effusion. No pneumothorax.",
    diagnosis="Pleural effusion",
)


def judge(text: str, what: str = "steps"):
    source = Source(run="r", case=1, sample=0, what=what, parts={"rationale": text})
    prompt = verdict_prompt(split_source(source), EVIDENCE)
    reply = asyncio.run(RulesJudge().answer(prompt, Request(parts=()), lambda _: None))
    return read_verdicts(reply.text, prompt)


@pytest.mark.parametrize(
    ("text", "factual"),
    [
        ("The diagnosis is pleural effusion.", "supported"),
        ("The diagnosis is pneumothorax.", "contradicted"),
        ("Not pneumothorax, since the lung is expanded.", "supported"),
        ("Pleural effusion is ruled out.", "contradicted"),
        ("This is a matter of taste.", "unsupported"),
    ],
)
def test_steps_by_rule(text, factual):
    (verdict,) = judge(text)
    assert verdict.factual == factual
    assert bool(verdict.error_types) == (factual == "contradicted")


def test_findings_are_compared_with_the_expert_s():
    verdicts = judge("There is a right pleural effusion. There is a pneumothorax.", "findings")
    assert [verdict.support for verdict in verdicts] == ["supported", "contradicted"]


def test_the_rubric_has_a_meaning_for_every_word_and_an_anchor_for_every_level():
    rubric = load_rubric()
    assert set(rubric.error_types) == set(ERROR_TYPES)
    assert set(rubric.education) == set(DIMENSIONS)
    for anchors in rubric.education.values():
        assert len(set(anchors.levels)) == 3
        assert all(len(level) > 20 for level in anchors.levels)


def test_every_prompt_carries_its_rubric_and_its_version_is_of_the_words():
    versions = {prompt_version(kind) for kind in ("split", "steps", "discussion", "findings")}
    assert len(versions) == 4
    source = Source(run="r", case=1, sample=0, what="discussion", parts={"background": "So."})
    words = " ".join(part for part in verdict_prompt(split_source(source), EVIDENCE).parts)
    for anchors in load_rubric().education.values():
        assert all(level in words for level in anchors.levels)
    assert "{{" not in words


def test_a_word_changed_in_the_rubric_or_in_a_prompt_is_another_version(monkeypatch):
    before, make, read = prompt_version("steps"), prompt_version.__wrapped__, prompts._read
    assert make("steps") == before
    with monkeypatch.context() as changed:
        rubric = msgspec.structs.replace(load_rubric(), critical="it matters.")
        changed.setattr(prompts, "load_rubric", lambda: rubric)
        assert make("steps") != before
    for name in ("system", "steps"):
        with monkeypatch.context() as changed:
            changed.setattr(prompts, "_read", lambda one, name=name: "other" if one == name else read(one))
            assert make("steps") != before


def test_sight_is_named_part_by_part():
    assert parse_sight("findings,history") == ("history", "findings")
    assert parse_sight(",".join(SIGHTS)) == SIGHTS
    with pytest.raises(UsageError, match="gold"):
        parse_sight("gold")
    assert json.dumps(EVIDENCE.data())
    assert set(EVIDENCE.names()) == {"options", "findings", "diagnosis", "general knowledge", "nothing"}
