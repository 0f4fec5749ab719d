"""The labels that judges and readers use; the page `rubric.md` defines each of them."""

import re
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from medthink.core.digest import digest_value

Support = Literal["supported", "contradicted", "not described", "unverifiable"]
Weight = Literal["decisive", "contributory", "incidental"]
Severity = Literal["none", "minor", "significant", "dangerous"]
ErrorType = Literal["image_understanding", "reasoning", "clinical_scenario", "medical_knowledge"]
SentenceLabel = Literal["correct", "incorrect", "not described", "unverifiable"]
Dimension = Literal[
    "disease_definition", "clinical_manifestation", "imaging_findings", "diagnostic_reasoning", "transferable_learning"
]
Score = Literal[0, 1, 2]
Zero = Literal["absent", "wrong"]

SUPPORTS: tuple[Support, ...] = get_args(Support)
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
ERROR_TYPES: tuple[ErrorType, ...] = get_args(ErrorType)
SENTENCE_LABELS: tuple[SentenceLabel, ...] = get_args(SentenceLabel)
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
SCORES: tuple[Score, ...] = get_args(Score)
ZEROS: tuple[Zero, ...] = get_args(Zero)

SECTIONS = ("introduction", "factual", "weight", "severity", "error types", "omissions", "education", "preference")
MAX_STEPS = 15
_LEVEL = re.compile(r"^- (\d): (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^## .*$", re.MULTILINE)


class Rubric(msgspec.Struct, frozen=True):
    """The rubric page, complete and by section."""

    page: str

    def version(self) -> str:
        """The digest of its text."""
        return digest_value(self.page)

    def section(self, name: str) -> str:
        """One section without its heading."""
        parts = [part.strip() for part in _HEADING.split(self.page)]
        return dict(zip(SECTIONS, parts, strict=True))[name]

    def levels(self, dimension: Dimension) -> dict[str, str]:
        """The requirements of each score of an education dimension, with examples."""
        heading = f"**{dimension.replace('_', ' ').capitalize()}**"
        lines = self.section("education").partition(heading)[2].partition("\n\n")[0]
        return dict(_LEVEL.findall(lines))


@cache
def load_rubric() -> Rubric:
    """The rubric that comes with the package."""
    return Rubric((Path(__file__).parent / "rubric.md").read_text(encoding="utf-8").strip())
