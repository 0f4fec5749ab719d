"""`baseline/rules`: an embedded judge that compares findings and option names with the reference.

It shows that the whole path works, offline and always the same. It understands next to nothing, and no run is ranked
by what it says.
"""

import re
from typing import Any

import msgspec

from medthink.judge.evidence import Evidence
from medthink.judge.judgement import RULES
from medthink.judge.prompts import JudgePrompt
from medthink.judge.rubric import DIMENSIONS, Dimension, ErrorType, SentenceLabel, Support
from medthink.judge.units import Unit, UnitSet
from medthink.judge.verdicts import EducationVerdict, SentenceVerdict, StatementVerdict, StepVerdict
from medthink.metrics.findings import compare_findings
from medthink.models.errors import ModelError
from medthink.models.request import Reply, Request, Usage
from medthink.runs.answerers import Free, NoteAttempt

_DENIAL = re.compile(
    r"\b(?:not|no|unlikely|excludes?|excluded|ruled out|rules out|against|less likely)\b", re.IGNORECASE
)
_SECTION_OF: dict[Dimension, str] = {
    "disease_definition": "background",
    "clinical_manifestation": "clinical_perspective",
    "imaging_findings": "imaging_perspective",
    "diagnostic_reasoning": "clinical_significance",
    "transferable_learning": "teaching_points",
}
_LABELS: dict[Support, SentenceLabel] = {
    "supported": "correct",
    "contradicted": "incorrect",
    "unsupported": "unverifiable",
}


class RulesJudge(Free):
    """The embedded judge, behind the same desk as a model."""

    spec = RULES

    async def answer(self, prompt: JudgePrompt, request: Request, note: NoteAttempt) -> Reply:  # noqa: ARG002
        """Judge by rule."""
        if prompt.units is None:
            raise ModelError("unsupported", f"{RULES} cuts nothing into steps", remedy="use the sentence splitter")
        form: dict[str, Any] = {"call": prompt.call} | _JUDGES[prompt.units.what](prompt.units, prompt.evidence)
        content = msgspec.to_builtins(form)
        return Reply(text=msgspec.json.encode(content).decode(), json=content, usage=Usage(), model=RULES)

    async def close(self) -> None:
        """Nothing is held open."""


class _Ruling(msgspec.Struct, frozen=True):
    support: Support
    reason: str
    rests_on: str = "nothing"
    error: ErrorType | None = None
    is_about_options: bool = False


def _judge_steps(units: UnitSet, evidence: Evidence) -> dict[str, Any]:
    rulings = [_rule_on_options(unit, evidence) or _rule_on_findings(unit, evidence) for unit in units.units]
    verdicts = [
        StepVerdict(
            id=unit.id,
            factual=ruling.support,
            critical=ruling.is_about_options or ruling.support == "contradicted",
            error_types=(ruling.error,) if ruling.error else (),
            reason=ruling.reason,
            rests_on=(ruling.rests_on,),
        )
        for unit, ruling in zip(units.units, rulings, strict=True)
    ]
    return {"verdicts": verdicts}


def _judge_discussion(units: UnitSet, evidence: Evidence) -> dict[str, Any]:
    rulings = {unit.id: _rule_on_findings(unit, evidence) for unit in units.units}
    verdicts = [
        SentenceVerdict(id=key, label=_LABELS[ruling.support], reason=ruling.reason) for key, ruling in rulings.items()
    ]
    return {"verdicts": verdicts, "education": [_score(name, units, rulings) for name in DIMENSIONS]}


def _judge_findings(units: UnitSet, evidence: Evidence) -> dict[str, Any]:
    rulings = {unit.id: _rule_on_findings(unit, evidence) for unit in units.units}
    verdicts = [
        StatementVerdict(id=key, support=ruling.support, reason=ruling.reason, rests_on=(ruling.rests_on,))
        for key, ruling in rulings.items()
    ]
    return {"verdicts": verdicts}


_JUDGES = {"steps": _judge_steps, "discussion": _judge_discussion, "findings": _judge_findings}


def _rule_on_options(unit: Unit, evidence: Evidence) -> _Ruling | None:
    """A step that names one single option claims it, or denies it."""
    words = unit.text.lower()
    named = [text for text in evidence.options.values() if text.lower() in words]
    if len(named) != 1 or not evidence.diagnosis:
        return None
    claims = not _DENIAL.search(words)
    is_right = claims == (named[0] == evidence.diagnosis)
    said = (
        f"it {'claims' if claims else 'denies'} an option, and the diagnosis says {'so' if is_right else 'otherwise'}"
    )
    error: ErrorType | None = None if is_right else "reasoning"
    return _Ruling("supported" if is_right else "contradicted", said, "diagnosis", error, is_about_options=True)


def _rule_on_findings(unit: Unit, evidence: Evidence) -> _Ruling:
    """Statements that match the reference support a unit, and one that conflicts contradicts it."""
    expert = "findings" if evidence.findings else "nothing"
    reference = "\n".join([evidence.findings, *evidence.captions])
    found = compare_findings(reference, unit.text)
    if found.conflicts:
        return _Ruling("contradicted", "a finding conflicts with the expert's", expert, "image_understanding")
    if found.matched:
        return _Ruling("supported", "a finding matches the expert's", expert)
    if found.candidate:
        return _Ruling("unsupported", "no finding matches the expert's", error="image_understanding")
    return _Ruling("unsupported", "it states no finding that the rules know")


def _score(name: Dimension, units: UnitSet, rulings: dict[str, _Ruling]) -> EducationVerdict:
    section = [rulings[unit.id] for unit in units.units if unit.part == _SECTION_OF[name]]
    if not section:
        return EducationVerdict(dimension=name, score=0, reason="its section is missing")
    if any(ruling.support == "supported" for ruling in section):
        return EducationVerdict(dimension=name, score=2, reason="its section has a finding that matches")
    return EducationVerdict(dimension=name, score=1, reason="its section is there")
