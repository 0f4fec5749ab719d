"""The results of a judge's exam, and the floor below which its verdicts do not count."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from medthink.core.jsonio import write_json
from medthink.core.numbers import as_percent
from medthink.core.stored import read_stored
from medthink.judge.edits import DELETED, is_counted
from medthink.judge.exam.sheets import REWORDED, UNTOUCHED
from medthink.judge.judgement import Seat, Setting
from medthink.stats.estimate import Estimate, Measured, Undefined

RESULTS_FILE = "results.json"
EXAMS_FILE = "exams.json"

# With 320 edited and 320 true units these lie a point or two below what a careful reader reaches.
LEAST_SENSITIVITY = 0.85
LEAST_PER_EDIT = 0.75
LEAST_SPECIFICITY = 0.90
LEAST_JUDGED = 0.99
_TRUE_UNITS = (UNTOUCHED, REWORDED)


class KindMarks(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge did in one kind of judging.

    `found` is, by edit, the share of false units that it calls false; `sensitivity` is the same over all counted edits.
    `accepted` is the share of true units that it calls true: untouched, reworded, longer. `same_again` is how often it
    repeats its label when asked again (`kappa_again` corrects for chance), `same_reversed` when the units come in
    reverse order.
    """

    asked: int
    judged: int
    sensitivity: Measured
    found: dict[str, Measured]
    accepted: dict[str, Measured]
    same_again: Measured
    kappa_again: Measured
    same_reversed: Measured

    @property
    def specificity(self) -> Measured:
        """The share of true units accepted: the lower of untouched and reworded."""
        found = [self.accepted[name] for name in _TRUE_UNITS if name in self.accepted]
        return min(found, key=lambda one: one.value or 0.0) if found else Undefined(reason="no such units", n=0)

    def shortfalls(self) -> tuple[str, ...]:
        """Why the judge is below the floor; empty if it is not."""
        # There are too few deletions for confidence limits, so their point values are compared.
        by_limit = DELETED not in self.found
        found = [
            *_below("finds", self.sensitivity, LEAST_SENSITIVITY, by_limit=by_limit),
            *(
                text
                for name, one in self.found.items()
                if name != DELETED and is_counted(name) and one.value is not None
                for text in _below(f"finds {name}", one, LEAST_PER_EDIT, by_limit=False)
            ),
            *(
                text
                for name in _TRUE_UNITS
                if name in self.accepted
                for text in _below(f"accepts {name}", self.accepted[name], LEAST_SPECIFICITY, by_limit=by_limit)
            ),
        ]
        if self.judged < LEAST_JUDGED * self.asked:
            found.append(f"judged {self.judged:,} of {self.asked:,} sheets")
        return tuple(found)


class PairMarks(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge compares two texts of equal content.

    `same_swapped` is how often it keeps its preference when the order is swapped, `first` the share of first places
    among the preferences it gives. `longer` and `own` are 1 where the longer text, or the one in its own words, is
    preferred in both orders, 0 where the other is, else a half; `own_by_others` is what other judges say about the same
    pairs.
    """

    pairs: int
    same_swapped: Measured
    first: Measured
    longer: Measured
    own: Measured
    own_by_others: Measured


class ExamResult(msgspec.Struct, frozen=True, kw_only=True):
    """The exam of one judge in one setting; `exam` is the digest of its sheets, `prompts` of its prompts by kind."""

    judge: str
    setting: Setting
    exam: str
    benchmark: str
    prompts: dict[str, str]
    models: tuple[str, ...]
    is_smoke_test: bool
    kinds: dict[str, KindMarks]
    pairs: PairMarks | None

    @property
    def shortfalls(self) -> dict[str, tuple[str, ...]]:
        """Why the judge is below the floor, by kind."""
        found = {what: marks.shortfalls() for what, marks in self.kinds.items()}
        return {what: reasons for what, reasons in found.items() if reasons}

    def is_of(self, seat: Seat) -> bool:
        """Whether it is the exam of the judge and setting of this seat."""
        return (self.judge, self.setting) == (seat.judge, seat.setting)


def _below(name: str, measured: Measured, least: float, *, by_limit: bool) -> list[str]:
    """Why a share is below the required minimum, judged by its lower confidence limit or by its value."""
    reached = measured.low if by_limit and isinstance(measured, Estimate) else measured.value
    if reached is None:
        return [f"{name}: not measured"]
    if reached >= least:
        return []
    word = "lower limit " if by_limit else ""
    return [f"{name} {word}{as_percent(reached)}, under {as_percent(least, 0)}"]


def read_results(path: Path) -> tuple[ExamResult, ...]:
    """The results of an exam, or those kept with a run; empty where there are none."""
    if not path.exists():
        return ()
    remedy = "run medthink judge exam again"
    return read_stored(path, tuple[ExamResult, ...], name="results of an exam", remedy=remedy)


def keep_results(path: Path, results: Iterable[ExamResult]) -> tuple[ExamResult, ...]:
    """Add results to those in a file; a new result replaces the old one of the same judge and setting."""
    merged = {(one.judge, msgspec.json.encode(one.setting)): one for one in (*read_results(path), *results)}
    kept = tuple(merged[key] for key in sorted(merged))
    write_json(path, msgspec.to_builtins(kept))
    return kept
