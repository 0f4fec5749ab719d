"""One judge's scores of one run, its agreement with readers, and its exam."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from medthink.core.markup import one_line
from medthink.judge.exam.results import ExamResult
from medthink.judge.exam.standing import tell_exam
from medthink.judge.judgement import PANEL, name_seats
from medthink.judge.scores import ScoreCell, SeatScores
from medthink.readers.agreement import RaterPair, RunAgreement
from medthink.readers.raters import READERS
from medthink.stats.words import mean, share

NO_READER = "not measured: no reader has judged this run"
OUTDATED = "not measured: judged again since readers were compared; run medthink agree again"
NO_PANEL = "not measured: readers are compared with single judges"
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
        if self.agreements is None or all(pair.kind != "reader–judge" for pair in self.agreements.pairs):
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
        return tell_exam(self.exams, self.scores.seat, what)

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
