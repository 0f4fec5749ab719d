"""Rules by which the embedded judge compares findings and option names with the reference."""

import re

import msgspec

from medthink.judge.judgement import Evidence
from medthink.judge.rubric import ErrorType, Support
from medthink.judge.units import Unit
from medthink.metrics.findings import compare_findings

_DENIAL = re.compile(
    r"\b(?:not|no|unlikely|excludes?|excluded|ruled out|rules out|against|less likely)\b", re.IGNORECASE
)


class RuleVerdict(msgspec.Struct, frozen=True):
    """The verdict of the rules on a unit."""

    support: Support
    reason: str
    rests_on: str = "nothing"
    error: ErrorType | None = None
    is_about_options: bool = False


def rule_on_options(unit: Unit, evidence: Evidence) -> RuleVerdict | None:
    """A step that names a single option claims it, or denies it."""
    words = unit.text.lower()
    named = [text for text in evidence.options.values() if text.lower() in words]
    if len(named) != 1 or not evidence.diagnosis:
        return None
    claims = not _DENIAL.search(words)
    is_right = claims == (named[0] == evidence.diagnosis)
    said = f"it {'claims' if claims else 'denies'} an option; the diagnosis {'agrees' if is_right else 'disagrees'}"
    error: ErrorType | None = None if is_right else "reasoning"
    return RuleVerdict("supported" if is_right else "contradicted", said, "diagnosis", error, is_about_options=True)


def rule_on_findings(unit: Unit, evidence: Evidence) -> RuleVerdict:
    """A finding that matches the reference supports a unit, and one that conflicts contradicts it."""
    expert = "findings" if evidence.findings else "nothing"
    reference = "\n".join([evidence.findings, *evidence.captions])
    found = compare_findings(reference, unit.text)
    if found.conflicts:
        return RuleVerdict("contradicted", "a finding conflicts with the expert's", expert, "image_understanding")
    if found.matched:
        return RuleVerdict("supported", "a finding matches the expert's", expert)
    if any(one.polarity == "present" for one in found.candidate):
        return RuleVerdict("not described", "the expert mentions no such finding")
    if found.candidate:
        return RuleVerdict("unverifiable", "no finding matches the expert's")
    return RuleVerdict("unverifiable", "it states no finding known to the rules")
