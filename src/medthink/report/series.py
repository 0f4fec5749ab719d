"""Curves of runs, with their order and names, and the Pareto set.

The figures of a report and the charts of the board both use them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from medthink.core.numbers import count_of
from medthink.models.request import Effort
from medthink.report.runs import ReportRun, short_models
from medthink.report.tables import tokens_per_case
from medthink.stats.comparisons.ranks import pareto_set
from medthink.stats.estimate import Measured, Undefined, ends_of

_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])", re.IGNORECASE)
# The sizes with what joins them to the name; "a3b" is the active part of a mixture.
_SIZES = re.compile(r"[-_ /]*(?<![a-z0-9.])a?\d+(?:\.\d+)?[bm](?![a-z0-9])[-_ /]*", re.IGNORECASE)
_FEWEST_MILLIONS = 20


def model_size(model: str) -> float | None:
    """The number of parameters in billions that the name states, or None; all experts of a mixture together."""
    stated = [(float(number), unit.lower()) for number, unit in _SIZE.findall(model)]
    billions = [number for number, unit in stated if unit == "b" and number > 0]
    # A small number with m is a context length ("1m"), not a size.
    millions = [number / 1000 for number, unit in stated if unit == "m" and number >= _FEWEST_MILLIONS]
    return next(iter(billions + millions), None)


def model_family(model: str) -> str:
    """The model's name without its size: what siblings of other sizes share; thinking and instruct are two lines."""
    return "-".join(filter(None, _SIZES.split(model))) or model


CurveAxis = Literal["share", "effort", "tokens", "size"]
_EFFORTS: tuple[str, ...] = get_args(Effort)


class PlottedRun(NamedTuple):
    """A run of a report or a row of the board, as figures know it; `usd` is its price, `group` the tie it is in."""

    label: str
    model: str
    family: str
    task: str
    condition: Mapping[str, Any]
    effort: str
    accuracy: Measured
    team: str = ""
    usd: float | None = None
    is_least_usd: bool = False
    output_tokens: float | None = None
    group: int | None = None

    @property
    def value(self) -> float:
        """The accuracy alone, zero where it is unknown."""
        return self.accuracy.value or 0.0

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval, if there is one."""
        return ends_of(self.accuracy)


class Point(NamedTuple):
    """One run at its position on the axis."""

    x: float
    run: PlottedRun


class Curve(NamedTuple):
    """Runs that differ only along the axis, from left to right."""

    name: str
    points: tuple[Point, ...]


class Series(NamedTuple):
    """The curves along one axis, highest first, and runs that are in none; `ticks` are the names of positions."""

    curves: tuple[Curve, ...]
    alone: tuple[Point, ...] = ()
    ticks: tuple[str, ...] = ()

    @property
    def points(self) -> list[Point]:
        """Every point."""
        return [*(point for curve in self.curves for point in curve.points), *self.alone]


class PricedRun(NamedTuple):
    """A run with its price, and whether no other beats it on one of price and accuracy without losing on the other."""

    run: PlottedRun
    usd: float
    is_best: bool


class _Along(NamedTuple):
    """An axis: a run's position on it, the field that varies along it, and whether runs in no curve are shown."""

    place: Callable[[PlottedRun], float | None]
    varied: str = ""
    shows_alone: bool = False


class _Held(NamedTuple):
    """The properties that all runs of a curve share; `whose` is their model, or the family of their models."""

    whose: str
    effort: str
    team: str
    task: str
    rest: tuple[tuple[str, str], ...]


_AXES: dict[CurveAxis, _Along] = {
    "share": _Along(lambda run: run.condition.get("image_share"), "image_share"),
    "effort": _Along(lambda run: float(_EFFORTS.index(run.effort)) if run.effort in _EFFORTS else None, "effort"),
    "tokens": _Along(lambda run: run.output_tokens, "effort", shows_alone=True),
    "size": _Along(lambda run: model_size(run.model), shows_alone=True),
}


def plot_entry(entry: ReportRun) -> PlottedRun:
    """A run of a report; its price is that of the whole run."""
    manifest, usage = entry.manifest, entry.scores.usage
    return PlottedRun(
        label=entry.label,
        model=manifest.model,
        family=model_family(manifest.model),
        task=manifest.task,
        condition=msgspec.to_builtins(manifest.condition),
        effort=manifest.condition.effort or "",
        accuracy=entry.accuracy or Undefined(reason="no letters", n=0),
        usd=usage.cost_usd.value if usage else None,
        is_least_usd=usage is not None and usage.uncounted_replies > 0,
        output_tokens=tokens_per_case(entry),
    )


def find_curves(axis: CurveAxis, runs: Sequence[PlottedRun], most: int) -> Series | None:
    """At most so many curves along this axis; None if all runs have the same position, or none can be joined."""
    along = _AXES[axis]
    found: dict[_Held, list[Point]] = {}
    for run in runs:
        x = along.place(run)
        if x is not None:
            found.setdefault(_held(axis, along.varied, run), []).append(Point(x, run))
    several = [held for held, points in found.items() if _is_spread(points)]
    joined = sorted(several, key=lambda held: max(point.run.value for point in found[held]), reverse=True)[:most]
    alone = tuple(point for held in found if held not in joined for point in found[held]) if along.shows_alone else ()
    if not joined and not _is_spread(alone):
        return None
    series = Series(_named({held: found[held] for held in joined}), alone)
    return _with_efforts(series) if axis == "effort" else series


def price_runs(runs: Sequence[PlottedRun]) -> list[PricedRun]:
    """The runs whose price is known, cheapest first; also those that cost nothing."""
    known = [(run.usd, run) for run in runs if run.usd is not None and run.accuracy.value is not None]
    known.sort(key=lambda one: (one[0], -one[1].value))
    best = pareto_set([usd for usd, _ in known], [run.value for _, run in known])
    return [PricedRun(run, usd, place in best) for place, (usd, run) in enumerate(known)]


def free_note(priced: Sequence[PricedRun]) -> str:
    """That what costs nothing is counted and not drawn; "" where everything has a price."""
    free = sum(one.usd == 0 for one in priced)
    return f" {count_of(free, 'of them costs', 'of them cost')} nothing, and no place on this axis." if free else ""


def _held(axis: CurveAxis, varied: str, run: PlottedRun) -> _Held:
    return _Held(
        whose=run.family if axis == "size" else run.model,
        effort="" if varied == "effort" else run.effort,
        team=run.team,
        task=run.task,
        rest=tuple(sorted((name, str(value)) for name, value in run.condition.items() if name != varied)),
    )


def _is_spread(points: Sequence[Point]) -> bool:
    return len({point.x for point in points}) > 1


def _named(joined: dict[_Held, list[Point]]) -> tuple[Curve, ...]:
    """The curves by model and effort; where two would have one name, by the labels of their first runs if they differ.

    Rows of the board have no label that tells the conditions of a model apart.
    """
    short = short_models([held.whose for held in joined])
    names = [f"{short[held.whose]} · {held.effort}" if held.effort else short[held.whose] for held in joined]
    ordered = [sorted(points, key=lambda point: (point.x, point.run.label)) for points in joined.values()]
    labels = [points[0].run.label for points in ordered]
    return tuple(
        Curve(label if names.count(name) > 1 and labels.count(label) == 1 else name, tuple(points))
        for name, label, points in zip(names, labels, ordered, strict=True)
    )


def _with_efforts(series: Series) -> Series:
    """The curves with positions in a row, one for each effort that some curve has."""
    used = sorted({point.x for point in series.points})
    curves = (
        curve._replace(points=tuple(Point(float(used.index(x)), run) for x, run in curve.points))
        for curve in series.curves
    )
    return Series(tuple(curves), ticks=tuple(_EFFORTS[int(x)] for x in used))
