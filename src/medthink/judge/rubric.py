"""The words that judges and readers judge by; `rubric.toml` says what each of them means."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from medthink.core.digest import digest_value

Support = Literal["supported", "contradicted", "unsupported"]
ErrorType = Literal["image_understanding", "reasoning", "clinical_scenario", "medical_knowledge"]
SentenceLabel = Literal["correct", "incorrect", "unverifiable"]
Dimension = Literal[
    "disease_definition", "clinical_manifestation", "imaging_findings", "diagnostic_reasoning", "transferable_learning"
]
Score = Literal[0, 1, 2]

SUPPORTS: tuple[Support, ...] = get_args(Support)
ERROR_TYPES: tuple[ErrorType, ...] = get_args(ErrorType)
SENTENCE_LABELS: tuple[SentenceLabel, ...] = get_args(SentenceLabel)
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
SCORES: tuple[Score, ...] = get_args(Score)

MAX_STEPS = 15


class Anchors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each level of one dimension of education value looks like."""

    asks: str
    levels: tuple[str, str, str]


class Rubric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The meaning of every word that a judge or reader may use."""

    support: dict[Support, str]
    critical: str
    error_types: dict[ErrorType, str]
    sentence: dict[SentenceLabel, str]
    education: dict[Dimension, Anchors]

    def version(self) -> str:
        """The digest of every word of it."""
        return digest_value(msgspec.to_builtins(self))

    def describe_support(self) -> str:
        """The three grades of support, one a line."""
        return _lines(self.support)

    def describe_error_types(self) -> str:
        """The four types of error, one a line."""
        return _lines(self.error_types)

    def describe_sentences(self) -> str:
        """The three labels of a sentence, one a line."""
        return _lines(self.sentence)

    def describe_education(self) -> str:
        """The five dimensions, each with what it asks and the anchors of 0, 1 and 2."""
        blocks = [
            "\n".join([f'- "{name}": {anchors.asks}', *(f"  {k}: {level}" for k, level in enumerate(anchors.levels))])
            for name, anchors in self.education.items()
        ]
        return "\n".join(blocks)


@cache
def load_rubric() -> Rubric:
    """The rubric that comes with the package."""
    text = (Path(__file__).parent / "rubric.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Rubric)


def _lines(meanings: dict[Support, str] | dict[ErrorType, str] | dict[SentenceLabel, str]) -> str:
    return "\n".join(f'- "{word}": {meaning}' for word, meaning in meanings.items())
