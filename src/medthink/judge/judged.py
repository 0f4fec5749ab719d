"""A judged run on disk, opened for reading, and all scores of its judgements."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from medthink.cases.case import Case
from medthink.cases.slices import Slices
from medthink.core.errors import DataError, UsageError
from medthink.judge.judgement import Judgement
from medthink.judge.judgements import JUDGEMENTS_FILE, read_judgements
from medthink.judge.kinds import KINDS
from medthink.judge.panel import Division, divide, seat_panel
from medthink.judge.scores import SeatScores, by_seat, mean_of
from medthink.judge.units import UnitKey, UnitSet, read_units
from medthink.runs.prediction import Prediction
from medthink.runs.run import Run
from medthink.stats import Measured


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The units of a run, its judgements, and whether each answer is right (None where there is none)."""

    path: Path
    units: dict[UnitKey, UnitSet]
    judgements: tuple[Judgement, ...]
    rights: dict[tuple[int, int], bool | None]


class JudgedScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of every seat by kind, the panel of all judges among them where there are several.

    `disagreement` is, by kind, the mean share of pairs of judges that differ on a unit; `divisions` gives it by unit.
    """

    kinds: dict[str, tuple[SeatScores, ...]]
    disagreement: dict[str, Measured]

    def __getitem__(self, what: str) -> tuple[Any, ...]:
        """The scores of one kind, seat by seat."""
        return self.kinds[what]

    def plain(self) -> dict[str, Any]:
        """The scores as plain values, under the plural of each kind."""
        kinds = {KINDS[what].plural: msgspec.to_builtins(found, str_keys=True) for what, found in self.kinds.items()}
        return kinds | {"disagreement": msgspec.to_builtins(self.disagreement)}


def cut_units(run: Path) -> dict[UnitKey, UnitSet]:
    """The run's units, or UsageError where its texts were never cut."""
    units = read_units(run)
    if not units:
        raise UsageError(
            f"the texts of {run} are not cut into units yet", remedy=f"run medthink judge {run} --judge SPEC first"
        )
    return units


def load_judged(path: Path, cases: Mapping[int, Case]) -> JudgedRun:
    """Open a judged run; `cases` are those of its benchmark."""
    run = Run.open(path)
    units, judgements = read_units(path), read_judgements(path)
    _refuse_strange_units(path, units, judgements)
    rights = {(one.case, one.sample): _is_right(one, cases[one.case]) for one in run.predictions()}
    return JudgedRun(path=path, units=units, judgements=tuple(judgements), rights=rights)


def score_judged(run: JudgedRun, slices: Slices) -> JudgedScores:
    """Every score that the run's judgements allow, seat by seat."""
    rows = [*run.judgements, *seat_panel(run.judgements)]
    return JudgedScores(
        kinds={
            name: tuple(
                kind.score_with_slices(group, run.units, run.rights, slices) for group in by_seat(rows, name).values()
            )
            for name, kind in KINDS.items()
        },
        disagreement={name: measured for name in KINDS if (measured := _disagreement(run, name)) is not None},
    )


def divisions(run: JudgedRun) -> dict[UnitKey, tuple[Division, ...]]:
    """How the judges are divided on every unit that two or more have judged; each judge's first reply counts."""
    groups: dict[UnitKey, list[Judgement]] = {}
    for one in run.judgements:
        if one.state == "ok" and one.repeat == 0 and not one.seat.is_smoke_test:
            groups.setdefault(one.key, []).append(one)
    return {key: divide(group) for key, group in sorted(groups.items()) if len(group) > 1}


def _disagreement(run: JudgedRun, what: str) -> Measured | None:
    divided = [(key[0], one.disagreement) for key, units in divisions(run).items() if key[2] == what for one in units]
    if not divided:
        return None
    return mean_of(((case, share) for case, share in divided), within=(0, 1))


def _is_right(prediction: Prediction, case: Case) -> bool | None:
    return None if prediction.prediction is None else prediction.prediction == case.reference.answer


def _refuse_strange_units(path: Path, units: dict[UnitKey, UnitSet], judgements: list[Judgement]) -> None:
    for number, one in enumerate(judgements, start=1):
        known = KINDS[one.what].items(units[one.key]) if one.key in units else ()
        if one.state == "ok" and [verdict.id for verdict in one.verdicts] != [item.id for item in known]:
            raise DataError(
                "the verdicts do not belong to the run's units",
                file=path / JUDGEMENTS_FILE,
                row=number,
                field=f"case {one.case}",
                remedy="the run has changed since it was judged: run medthink judge again with the same judges",
            )
