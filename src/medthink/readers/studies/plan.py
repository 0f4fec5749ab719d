"""The plan of a study: its readers and texts, the effort in hours, and the expected precision."""

import math
from pathlib import Path

import msgspec

from medthink.core.errors import UsageError
from medthink.judge.kinds import KINDS
from medthink.readers.assignment import ReadingPlan

# Intraclass correlation of errors within a case: between the values measured for errors (0.3) and disagreements (0.1).
CLUSTERING = 0.2
# Planning times for a radiologist: to read a case and commit to a diagnosis, and to judge one unit.
CASE_MINUTES = 2.5
UNIT_SECONDS = 25.0
_Z = 1.959964


class StudyPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a study.

    `runs` and `data` are folders on the server. Without any of the `kinds` of judging, readers only give their own
    diagnosis: a human baseline. `cases` is how many texts (or, for a baseline, cases) are drawn by the seed.
    """

    name: str
    data: str
    split: str = "test"
    runs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    readers: tuple[str, ...]
    per_case: int = 2
    cases: int | None = None
    modality: str = ""
    again_share: float = 0.1
    planted_share: float = 0.05
    seed: int = 0
    needs_training: bool = True

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UsageError("the study has no name", remedy="give it one")
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown:
            raise UsageError(f"no such kind of judging: {', '.join(unknown)}", remedy=f"known: {', '.join(KINDS)}")
        if bool(self.kinds) != bool(self.runs):
            raise UsageError(
                "a study either judges the texts of runs, or asks readers only for their diagnosis",
                remedy="choose runs and kinds of judging, or neither",
            )
        self.reading()

    @property
    def folder(self) -> Path:
        """The path of the benchmark."""
        return Path(self.data)

    @property
    def is_baseline(self) -> bool:
        """Whether readers only give their own diagnosis."""
        return not self.kinds

    def reading(self) -> ReadingPlan:
        """The part of the plan about the assignment of readers."""
        return ReadingPlan(
            readers=self.readers,
            per_sheet=self.per_case,
            sheets=self.cases,
            again_share=self.again_share,
            planted_share=0.0 if self.is_baseline else self.planted_share,
            seed=self.seed,
        )


class StudyForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The expected effort and precision of a study, before it begins.

    `rate_half_width` is half the 95 % interval of a rate of 20 % over all units, `kappa_half_width` that of a κ of 0.6
    between two readers; None if no unit is judged, or none twice. For a human baseline, the rate is the accuracy.
    """

    texts: int
    units: int
    hours: dict[str, float]
    rate_half_width: float | None
    kappa_half_width: float | None


def forecast(plan: StudyPlan, units: list[int], sittings: dict[str, list[int]]) -> StudyForecast:
    """The forecast, from the number of units in each text and in every sitting of each reader."""
    hours = {
        reader: sum(CASE_MINUTES / 60 + count * UNIT_SECONDS / 3600 for count in counts)
        for reader, counts in sittings.items()
    }
    total = sum(units)
    if plan.is_baseline:
        rate = _half_width(0.5 * 0.5, len(units), 1.0) if units else None
        return StudyForecast(texts=len(units), units=0, hours=hours, rate_half_width=rate, kappa_half_width=None)
    mean = total / len(units) if units else 0.0
    is_double = plan.per_case > 1
    return StudyForecast(
        texts=len(units),
        units=total,
        hours=hours,
        rate_half_width=_half_width(0.2 * 0.8, total, mean) if total else None,
        kappa_half_width=_half_width(kappa_variance(0.6, 0.2), total, mean) if total and is_double else None,
    )


def kappa_variance(kappa: float, share: float) -> float:
    """The large-sample variance of κ for one pair, two readers of equal margins (Fleiss, Cohen and Everitt 1969)."""
    both = kappa * share * (1 - share) + share**2
    cells = {(1, 1): both, (1, 0): share - both, (0, 1): share - both, (0, 0): 1 - 2 * share + both}
    margin = {1: share, 0: 1 - share}
    expected = share**2 + (1 - share) ** 2
    agreed = sum(cells[k, k] * (1 - 2 * margin[k] * (1 - kappa)) ** 2 for k in (0, 1))
    apart = (1 - kappa) ** 2 * sum(cells[i, j] * (margin[i] + margin[j]) ** 2 for i, j in ((0, 1), (1, 0)))
    return (agreed + apart - (kappa - expected * (1 - kappa)) ** 2) / (1 - expected) ** 2


def _half_width(variance: float, units: int, per_case: float) -> float:
    """Half the width of a 95 % interval over units that are correlated within a case."""
    return _Z * math.sqrt(variance / units * (1 + max(0.0, per_case - 1) * CLUSTERING))
