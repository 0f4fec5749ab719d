"""Judges' verdicts on a submission's reasoning, as a board shows them, from the judged run it was packed from."""

from pathlib import Path

import msgspec

from medthink.board.measures import keep_measure
from medthink.board.records import note
from medthink.board.store import BoardStore
from medthink.cases.case import Case
from medthink.judge.judged import load_judged, score_judged
from medthink.judge.judgement import PANEL, name_seats
from medthink.judge.judgements import JUDGEMENTS_FILE
from medthink.judge.kinds.step_scores import StepScores
from medthink.stats.estimate import Measured

_STEPS = "steps"


class JudgedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One judge on the steps of the reasoning.

    `error_types` is the share of the wrong critical steps that have each type; a step may have several. `judged` is the
    share of expected judgements with a verdict.
    """

    judge: str
    is_smoke_test: bool
    steps: int
    judged: Measured
    wrong_steps: Measured
    wrong_critical_steps: Measured
    sound_if_right: Measured
    error_types: dict[str, Measured]


class JudgedProfiles(msgspec.Struct, frozen=True, kw_only=True):
    """The profiles of all judges, with the panel's first if there are several."""

    profiles: tuple[JudgedProfile, ...]

    @property
    def leading(self) -> JudgedProfile | None:
        """The one shown in tables."""
        return next(iter(self.profiles), None)


def enter_profiles(store: BoardStore, submission_id: int, run: Path, cases: dict[int, Case], *, actor: str) -> int:
    """Store the verdicts of a run's judges; returns the number of judges, 0 if it was never judged."""
    if not (run / JUDGEMENTS_FILE).is_file():
        return 0
    scored: tuple[StepScores, ...] = score_judged(load_judged(run, cases), {})[_STEPS]
    known = [one for one in scored if one.coverage.judged]
    ordered = sorted(known, key=lambda one: (one.is_smoke_test, one.seat.judge != PANEL))
    names = name_seats({one.seat: one.label for one in ordered if one.seat.judge != PANEL})
    made = JudgedProfiles(profiles=tuple(_profile(one, names.get(one.seat, one.label)) for one in ordered))
    with store.write() as connection:
        keep_measure(connection, submission_id, "judged", made)
        note(connection, submission_id, actor, "judged", {"judges": [one.judge for one in made.profiles]})
    return len(made.profiles)


def _profile(one: StepScores, name: str) -> JudgedProfile:
    return JudgedProfile(
        judge=name,
        is_smoke_test=one.is_smoke_test,
        steps=one.steps,
        judged=one.coverage.share,
        wrong_steps=one.errors,
        wrong_critical_steps=one.critical_errors,
        sound_if_right=one.sound_if_right.every_step,
        error_types={cell.error_type: cell.of_errors for cell in one.profile if cell.critical},
    )
