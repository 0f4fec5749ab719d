"""The report of a check: defects with their location and remedy."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from medthink.cases.check.defects import DEFECTS, Severity

_ORDER = {code: index for index, code in enumerate(DEFECTS)}


class FoundDefect(NamedTuple):
    """A defect as a check reports it, without its location."""

    code: str
    field: str
    detail: str


class DataProblem(msgspec.Struct, frozen=True):
    """One defect with its location and remedy; `case` is None for a defect of a whole split or file."""

    code: str
    severity: Severity
    split: str
    case: int | None
    field: str
    detail: str
    remedy: str


class CheckReport(msgspec.Struct, frozen=True):
    """Every problem of a benchmark, sorted: errors first, then in the order of the defect table."""

    problems: tuple[DataProblem, ...]
    cases: int
    images: int
    pixels_checked: bool

    @property
    def errors(self) -> tuple[DataProblem, ...]:
        """The problems that break an invariant."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[DataProblem, ...]:
        """The problems that break no invariant but that a user should know about."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @property
    def counts(self) -> dict[str, int]:
        """How many problems of each code, in report order."""
        return dict(Counter(problem.code for problem in self.problems))

    def __repr__(self) -> str:
        return f"CheckReport({self.cases:,} cases: {len(self.errors):,} errors, {len(self.warnings):,} warnings)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("cases", self.cases), ("errors", len(self.errors)), ("warnings", len(self.warnings))]

    def _repr_html_(self) -> str:
        from medthink.cases.notebook import check_card

        return check_card(self)


def locate(finding: FoundDefect, *, split: str = "", case: int | None = None) -> DataProblem:
    """The finding as a problem of this case, with the table's severity and remedy."""
    defect = DEFECTS[finding.code]
    return DataProblem(finding.code, defect.severity, split, case, finding.field, finding.detail, defect.remedy)


def sort_problems(problems: Iterable[DataProblem]) -> tuple[DataProblem, ...]:
    """Errors before warnings, then by code, split, case and field; else in the order of the files."""
    return tuple(sorted(problems, key=_rank))


def _rank(problem: DataProblem) -> tuple[object, ...]:
    case = -1 if problem.case is None else problem.case
    return (problem.severity, _ORDER[problem.code], problem.split, case, problem.field)
