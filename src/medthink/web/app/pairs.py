"""Paired comparison of two sets of answers, for pages: the difference and its verdict, agreement, slices."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from medthink.cases.slices import sort_slices
from medthink.scoring.compare import Comparison, PairOfRuns, SliceDifference
from medthink.scoring.scores import size_text
from medthink.stats.estimate import Estimate, Measured, Undefined
from medthink.web.app.rendering import Difference, tell_difference

_HALF = 100


class DifferencePosition(msgspec.Struct, frozen=True, kw_only=True):
    """A difference on an axis: zero is in the middle, the ends are `reach` points."""

    difference: Difference
    dot: float
    low: float
    high: float
    is_clear: bool


class SliceLine(msgspec.Struct, frozen=True, kw_only=True):
    """The difference in one slice."""

    by: str
    value: str
    n: int
    mark: DifferencePosition


class SharedCases(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of cases on which both are right, one of them, or neither, as shares of a bar."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def total(self) -> int:
        """All cases."""
        return self.both + self.only_a + self.only_b + self.neither


class PairFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A paired comparison of A and B: the verdict, the difference on its axis, agreement, slices."""

    verdict: tuple[str, ...]
    details: str
    n: int
    mark: DifferencePosition
    band: float
    reach: int
    agreement: SharedCases | None
    won: int
    lost: int
    slices: tuple[SliceLine, ...]
    slice_reach: int


def show_pair(
    names: tuple[str, str], compared: Comparison, rights: Iterable[tuple[float, float]], details: str
) -> PairFigures:
    """The figures of a comparison of two for a page; `rights` are the shares of right answers of both, case by case."""
    pair = compared.pairs[0]
    reach, slice_reach = reach_of([pair.difference]), reach_of([one.difference for one in pair.slices])
    smallest = 0.0 if isinstance(pair.resolution, Undefined) else pair.resolution.difference
    return PairFigures(
        verdict=tell_verdict(*names, pair.difference, is_different=pair.is_different),
        details=details,
        n=compared.n_cases,
        mark=place_points(pair.difference, reach, is_clear=pair.is_different),
        band=band_of(smallest, reach),
        reach=reach,
        agreement=share_cases(rights),
        won=len(pair.won),
        lost=len(pair.lost),
        slices=tuple(slice_lines(pair.slices, slice_reach)),
        slice_reach=slice_reach,
    )


def choose_flipped(pair: PairOfRuns, only: str) -> tuple[int, ...]:
    """The cases that flipped: all, or those where `a` or `b` is ahead."""
    return {"a": pair.won, "b": pair.lost}.get(only, (*pair.won, *pair.lost))


def tell_verdict(a: str, b: str, difference: Measured, *, is_different: bool) -> tuple[str, ...]:
    """The verdict: the better one and the difference, or not distinguishable; in parts for line breaking."""
    if not is_different:
        return (a, " and ", b, " are not distinguishable ", "on these cases.")
    better, worse = (a, b) if (difference.value or 0.0) > 0 else (b, a)
    return (better, " is better than ", worse, " by ", f"{size_text(difference)}.")


def tell_p_value(p: float) -> str:
    """`= 0.031`, `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def reach_of(differences: Sequence[Measured]) -> int:
    """The number of points that an axis must show on either side, in steps of five."""
    ends = [0.05]
    for one in differences:
        ends += [abs(one.low), abs(one.high)] if isinstance(one, Estimate) else [abs(one.value or 0.0)]
    return 5 * int(max(ends) * 20 + 1)


def place_points(difference: Measured, reach: int, *, is_clear: bool) -> DifferencePosition:
    """A difference on an axis that extends this many points either way."""
    value = difference.value or 0.0
    low, high = (difference.low, difference.high) if isinstance(difference, Estimate) else (value, value)

    def x(share: float) -> float:
        return round(_HALF + share * 100 / reach * _HALF, 1)

    return DifferencePosition(
        difference=tell_difference(difference), dot=x(value), low=x(low), high=x(high), is_clear=is_clear
    )


def band_of(smallest: float, reach: int) -> float:
    """Half the width of the band of undetectable differences, on an axis of this reach."""
    return min(smallest * 100 / reach, 1.0) * _HALF


def share_cases(pairs: Iterable[tuple[float, float]]) -> SharedCases | None:
    """The four cells of two sets of answers, for one answer per case."""
    listed = list(pairs)
    if any(share not in (0.0, 1.0) for pair in listed for share in pair):
        return None
    return SharedCases(
        both=listed.count((1.0, 1.0)),
        only_a=listed.count((1.0, 0.0)),
        only_b=listed.count((0.0, 1.0)),
        neither=listed.count((0.0, 0.0)),
    )


def slice_lines(slices: Sequence[SliceDifference], reach: int) -> Iterator[SliceLine]:
    """The slices in their usual order."""
    groups = {(one.by, one.value): [one] for one in slices}
    for (by, value), (one,) in sort_slices(groups).items():
        mark = place_points(one.difference, reach, is_clear=one.is_different)
        yield SliceLine(by=by, value=value, n=one.n, mark=mark)
