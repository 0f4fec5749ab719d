"""Verdicts, each bound by id to the unit it is about."""

from typing import Literal

import msgspec

from medthink.judge.rubric import Dimension, ErrorType, Score, SentenceLabel, Support

UnjudgedKind = Literal[
    "too_many",
    "unsplit",
    "not_json",
    "wrong_form",
    "wrong_call",
    "wrong_ids",
    "contradictory",
    "refused",
    "truncated",
    "failed",
    "no_majority",
]


class StepVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a step is true, whether it matters, what kind of error it holds, and what that rests on."""

    id: str
    factual: Support
    critical: bool
    error_types: tuple[ErrorType, ...]
    reason: str
    rests_on: tuple[str, ...]

    @property
    def is_error(self) -> bool:
        """Whether the step is anything but supported."""
        return self.factual != "supported"


class SentenceVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a sentence of a discussion is true."""

    id: str
    label: SentenceLabel
    reason: str


class EducationVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much a discussion teaches in one dimension."""

    dimension: Dimension
    score: Score
    reason: str


class StatementVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a statement of findings or summary is supported by the expert's words or the images."""

    id: str
    support: Support
    reason: str
    rests_on: tuple[str, ...]


class Unjudged(msgspec.Struct, frozen=True):
    """No verdict came of it, and why: never to be read as a verdict."""

    kind: UnjudgedKind
    detail: str
