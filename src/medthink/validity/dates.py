"""Accuracy on cases published before and after a date, such as the day a model was released."""

from datetime import date, datetime

import msgspec

from medthink.scoring.material import Material
from medthink.scoring.scores import Scores
from medthink.stats.estimate import Measured, Undefined
from medthink.stats.intervals import newcombe, rate_of

DATE_COLUMN = "case_date"
"""The column of a benchmark's rows with the day a case was published."""

_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%Y-%m", "%Y")


class DateGap(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy before a date minus accuracy from it on; `undated` counts cases without a date that can be read."""

    run: str
    released: date
    before: Measured
    after: Measured
    difference: Measured
    undated: int


def accuracy_by_date(material: Material, scores: Scores, released: date) -> DateGap:
    """Accuracy on the cases dated before a day, and from it on."""
    rights: dict[bool, list[float]] = {True: [], False: []}
    undated = 0
    for case in scores.cases:
        day = read_date(material.cases[case.case].extra.get(DATE_COLUMN))
        if day is None:
            undated += 1
        else:
            rights[day < released].append(case.right)
    before, after = (rate_of(sum(rights[place]), len(rights[place])) for place in (True, False))
    return DateGap(
        run=scores.origin.name,
        released=released,
        before=before,
        after=after,
        difference=_difference(before, after),
        undated=undated,
    )


def read_date(value: object) -> date | None:
    """A day as rows write it: ISO, 31.12.2020, 31/12/2020, 2020-12 or 2020; None for anything else."""
    text = str(value or "").strip()
    for form in _FORMS:
        for cut in (text, text[:10]):
            try:
                return datetime.strptime(cut, form).date()
            except ValueError:
                continue
    return None


def _difference(before: Measured, after: Measured) -> Measured:
    if before.n and after.n:
        return newcombe(before, after)
    return Undefined(reason="no case is dated on one of the sides", n=before.n + after.n)
