"""How a judge stands by its exam, in the words that stand beside each of its numbers, wherever they are shown."""

from collections.abc import Sequence

from medthink.judge.exam.results import ExamResult
from medthink.judge.judgement import PANEL, Seat
from medthink.judge.kinds import KINDS
from medthink.stats.words import share

NO_EXAM = "not examined; run medthink judge exam RUN"
NO_PANEL_EXAM = "not examined as a panel; its judges are, one by one"
NO_SETTING_EXAM = "not examined under this setting"
BELOW_FLOOR = "BELOW THE FLOOR"


def tell_exam(exams: Sequence[ExamResult], seat: Seat, what: str) -> str:
    """How the judge did in its exam of this kind of judging, and whether that is below the floor."""
    if seat.judge == PANEL:
        return NO_PANEL_EXAM
    own = [one for one in exams if one.judge == seat.judge]
    result = next((one for one in own if one.is_of(seat)), None)
    if result is None:
        return NO_SETTING_EXAM if own else NO_EXAM
    told = _marks_text(result, what)
    is_earlier = told and result.prompts.get(what) != seat.prompt
    return f"{told}; with an earlier version of the prompt" if is_earlier else told or f"not examined in {what}"


def _marks_text(result: ExamResult, what: str) -> str:
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
