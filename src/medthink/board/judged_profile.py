"""Judges' verdicts on a submission's reasoning, as a board shows them, from the judged run it was packed from."""

from pathlib import Path

import msgspec

from medthink.cases.case import Case
from medthink.judge.exam.results import BELOW_FLOOR, EXAMS_FILE, describe_exam, read_results
from medthink.judge.judged import JUDGEMENTS_FILE, load_judged, score_judged
from medthink.judge.judgement import PANEL, name_judges
from medthink.judge.kinds.step_scores import StepScores
from medthink.stats.estimate import Measured
from medthink.store.engine import Store, record_event

_STEPS = "steps"


class JudgedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One judge on the steps of the reasoning.

    `error_types` is the share of the wrong critical steps that have each type; a step may have several. `judged` is the
    share of expected judgements with a verdict. `exam` is the judge's exam result in one line, as in reports.
    """

    judge: str
    is_smoke_test: bool
    steps: int
    judged: Measured
    wrong_steps: Measured
    wrong_critical_steps: Measured
    sound_if_right: Measured
    error_types: dict[str, Measured]
    exam: str

    @property
    def is_below_floor(self) -> bool:
        """Whether the judge is below the floor of its exam."""
        return self.exam.startswith(BELOW_FLOOR)


class JudgedProfiles(msgspec.Struct, frozen=True, kw_only=True):
    """The profiles of all judges, with the panel's first if there are several."""

    profiles: tuple[JudgedProfile, ...]

    @property
    def leading(self) -> JudgedProfile | None:
        """The one shown in tables: the first whose judge is not below the floor of its exam; None if there is none."""
        return next((one for one in self.profiles if not one.is_below_floor), None)


def store_profiles(store: Store, submission_id: int, run: Path, cases: dict[int, Case], *, actor: str) -> int:
    """Store the verdicts of a run's judges; returns the number of judges, 0 if it was never judged."""
    if not (run / JUDGEMENTS_FILE).is_file():
        return 0
    scored: tuple[StepScores, ...] = score_judged(load_judged(run, cases), {})[_STEPS]
    known = [one for one in scored if one.coverage.judged]
    ordered = sorted(known, key=lambda one: (one.is_smoke_test, one.seat.judge != PANEL))
    names = name_judges({one.seat: one.label for one in ordered if one.seat.judge != PANEL})
    exams = read_results(run / EXAMS_FILE)
    made = JudgedProfiles(
        profiles=tuple(
            _profile(one, names.get(one.seat, one.label), describe_exam(exams, one.seat, _STEPS)) for one in ordered
        )
    )
    with store.write() as connection:
        record_event(connection, submission_id, actor, "judged", msgspec.to_builtins(made))
    return len(made.profiles)


def _profile(one: StepScores, name: str, exam: str) -> JudgedProfile:
    return JudgedProfile(
        judge=name,
        is_smoke_test=one.is_smoke_test,
        steps=one.steps,
        judged=one.coverage.share,
        wrong_steps=one.errors,
        wrong_critical_steps=one.critical_errors,
        sound_if_right=one.sound_if_right.every_step,
        error_types={cell.error_type: cell.of_errors for cell in one.profile if cell.critical},
        exam=exam,
    )
