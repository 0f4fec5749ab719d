"""One judge's scores of one run, its agreement with readers, and its exam."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from medthink.core.markup import one_line
from medthink.core.numbers import as_percent, as_rate
from medthink.judge.exam.results import ExamResult
from medthink.judge.judgement import PANEL, name_seats
from medthink.judge.kinds import KINDS
from medthink.judge.scores import ScoreCell, SeatScores
from medthink.readers.agreement import RaterPair, RunAgreement
from medthink.readers.raters import READERS
from medthink.stats.estimate import Estimate, Measured

NO_READER = "not measured: no reader has judged this run"
OUTDATED = "not measured: judged again since readers were compared; run medthink agree again"
NO_PANEL = "not measured: readers are compared with single judges"
NO_EXAM = "not examined; run medthink judge exam RUN"
NO_PANEL_EXAM = "not examined as a panel; its judges are, one by one"
NO_SETTING_EXAM = "not examined under this setting"
BELOW_FLOOR = "BELOW THE FLOOR"
NO_SHARED = "not measured: no reader has judged what this judge has"
_LONGEST_NAME = 30

Scored = TypeVar("Scored", bound=SeatScores)


class Seated(msgspec.Struct, Generic[Scored], frozen=True):
    """The scores that one judge gives one run; `judge` is its name among the judges of that run.

    `is_outdated` says that readers were compared with other judgements; `exams` are those of all judges.
    """

    run: str
    judge: str
    scores: Scored
    agreements: RunAgreement | None
    is_outdated: bool = False
    exams: tuple[ExamResult, ...] = ()

    @property
    def title(self) -> str:
        """The run and its judge."""
        return f"{self.run}, judged by {self.judge}"

    def agreement(self, *aspects: str) -> str:
        """How far the judge agrees with readers on these aspects, over all cases, or why that is unknown."""
        if self.is_outdated:
            return OUTDATED
        if not self._is_read():
            return NO_READER
        if self.scores.seat.judge == PANEL:
            return NO_PANEL
        found = {aspect: self._pairs(aspect, "", "") for aspect in aspects}
        if not any(found.values()):
            return NO_SHARED
        texts = {aspect: _pairs_text(pairs) for aspect, pairs in found.items()}
        return "; ".join(f"{aspect}: {text}" if len(texts) > 1 else text for aspect, text in texts.items())

    def slice_agreement(self, aspect: str, slicing: str, value: str) -> str:
        """Agreement within one slice; where it was not measured there, that of all cases, marked as such."""
        pairs = self._pairs(aspect, slicing, value)
        if pairs:
            return _pairs_text(pairs)
        whole = self.agreement(aspect)
        return f"all cases: {whole}" if self._pairs(aspect, "", "") else whole

    def exam(self, what: str) -> str:
        """How the judge did in its exam of this kind of judging, and whether that is below the floor."""
        seat = self.scores.seat
        if seat.judge == PANEL:
            return NO_PANEL_EXAM
        own = [one for one in self.exams if one.judge == seat.judge]
        result = next((one for one in own if one.is_of(seat)), None)
        if result is None:
            return NO_SETTING_EXAM if own else NO_EXAM
        told = _exam_text(result, what)
        is_earlier = told and result.prompts.get(what) != seat.prompt
        return f"{told}; with an earlier version of the prompt" if is_earlier else told or f"not examined in {what}"

    def _is_read(self) -> bool:
        return self.agreements is not None and any(pair.kind == "reader–judge" for pair in self.agreements.pairs)

    def _pairs(self, aspect: str, slicing: str, value: str) -> list[RaterPair]:
        """With the readers' majority where there is one, else with each reader."""
        wanted = ("reader–judge", self.judge, aspect, slicing, value)
        pairs = self.agreements.pairs if self.agreements else ()
        own = [one for one in pairs if (one.kind, one.b, one.aspect, one.slicing, one.value) == wanted]
        return [one for one in own if one.a == READERS] or own


def seat_scores(
    run: str,
    found: Sequence[Scored],
    agreements: RunAgreement | None,
    *,
    is_outdated: bool = False,
    exams: tuple[ExamResult, ...] = (),
) -> list[Seated[Scored]]:
    """The seats that gave verdicts, under the names that `medthink agree` uses."""
    names = name_seats({one.seat: one.label for one in found if one.coverage.judged and one.seat.judge != PANEL})
    return [Seated(run, names.get(one.seat, one.label), one, agreements, is_outdated, exams) for one in found]


def _exam_text(result: ExamResult, what: str) -> str:
    """What the judge finds and accepts, or how it compares pairs; empty if it was not examined in this kind."""
    if KINDS[what].is_pairwise:
        if result.pairs is None:
            return ""
        return f"same in both orders {share(result.pairs.same_swapped)}; own wording {share(result.pairs.own)}"
    if what not in result.kinds:
        return ""
    marks = result.kinds[what]
    mark = f"{BELOW_FLOOR}: " if marks.shortfalls() else "passed: "
    return f"{mark}finds {share(marks.sensitivity)}, accepts {share(marks.specificity)}"


def share(measured: Measured) -> str:
    """`57.2 % (53.6–60.8)`; the reason for a missing interval would make a column too wide."""
    if isinstance(measured, Estimate):
        return as_rate(measured.value, measured.low, measured.high)
    return "–" if measured.value is None else f"{as_percent(measured.value)} (no interval)"


def mean(measured: Measured, digits: int) -> str:
    """`1.17 (1.09–1.25)` with this many digits."""
    if isinstance(measured, Estimate):
        return f"{measured.value:.{digits}f} ({measured.low:.{digits}f}–{measured.high:.{digits}f})".replace("-", "−")
    return "–" if measured.value is None else f"{measured.value:.{digits}f} (no interval)".replace("-", "−")


def cell_text(cell: ScoreCell) -> str:
    """A cell of a score table."""
    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    if isinstance(cell.value, str):
        return cell.value
    return share(cell.value) if cell.digits is None else mean(cell.value, cell.digits)


def _pairs_text(pairs: Sequence[RaterPair]) -> str:
    return ", ".join(map(_pair_text, pairs)) or "not measured"


def _pair_text(pair: RaterPair) -> str:
    """κ with its interval, weighted for ordered labels, its n, and whether it misleads."""
    name, measured = ("weighted κ", pair.ordered.kappa_quadratic) if pair.ordered else ("κ", pair.nominal.kappa)
    kappa = f"{name} {mean(measured, 2)}" if measured.value is not None else f"{name} undefined ({measured.reason})"
    caution = f", AC1 {mean(pair.nominal.ac1, 2)} because labels are unbalanced" if pair.nominal.caution else ""
    whom = "" if pair.a == READERS else f" with {one_line(pair.a, _LONGEST_NAME)}"
    return f"{kappa}{caution}, n = {pair.nominal.n:,}{whom}".replace("n = ", "n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
