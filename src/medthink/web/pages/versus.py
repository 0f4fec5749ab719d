"""Two runs side by side: the paired verdict, the cases that flipped, the slices, and what differs between the runs."""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from medthink.cases.slices import sort_slices
from medthink.core.errors import MedThinkError
from medthink.report.words import count_of
from medthink.runs.prediction import Prediction
from medthink.scoring.compare import Comparison, PairOfRuns, compare_runs
from medthink.scoring.material import Material
from medthink.scoring.score import score_letters
from medthink.stats.estimate import Estimate, Measured, Undefined
from medthink.web.pages.marks import Difference, tell_difference
from medthink.web.pages.query import Query
from medthink.web.pages.run import CaseLine, make_case_lines
from medthink.web.pages.runs import RunLine, make_line
from medthink.web.shelf import ShelfRun
from medthink.web.standing import Standing
from medthink.workflow.outcome import State

_HALF = 100


class VersusQuery(Query, frozen=True, kw_only=True):
    """Which of the flipped cases are shown: all, `a` or `b`."""

    only: str = ""


class PointsMark(msgspec.Struct, frozen=True, kw_only=True):
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
    mark: PointsMark


class SharedCases(msgspec.Struct, frozen=True, kw_only=True):
    """On how many cases both are right, one of them, neither; shares of the bar they are drawn in."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def total(self) -> int:
        """All cases."""
        return self.both + self.only_a + self.only_b + self.neither


class FlippedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that one of the runs gets right more often than the other."""

    a: CaseLine
    b: CaseLine
    images: tuple[str, ...]
    winner: str


class VersusPage(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison, or `problem`: why there is none."""

    a: RunLine
    b: RunLine
    choices: tuple[tuple[str, str], ...]
    query: VersusQuery
    problem: str = ""
    verdict: str = ""
    details: str = ""
    caution: str = ""
    n: int = 0
    mark: PointsMark | None = None
    band: float = 0.0
    reach: int = 0
    agreement: SharedCases | None = None
    flipped: tuple[FlippedCase, ...] = ()
    won: int = 0
    lost: int = 0
    slices: tuple[SliceLine, ...] = ()
    slice_reach: int = 0
    differing: tuple[tuple[str, str, str], ...] = ()


def compare_two(a: ShelfRun, b: ShelfRun) -> Comparison | str:
    """The comparison on the cases that both have so far, or why there is none."""
    if a is b:
        return "This is one run, not two. Choose another one."
    if not a.rights or not b.rights:
        lacking = a if not a.rights else b
        return lacking.doubt or f"{lacking.name} has no answers by letter yet."
    shared = sorted(a.rights.keys() & b.rights.keys())
    if a.bench is None or a.group[0] != b.group[0] or not shared:
        return f"{a.name} and {b.name} have no case in common: they are about other benchmarks or other cases."
    cases = {number: a.bench.cases[number] for number in shared}
    try:
        return compare_runs([score_letters(_material(run, shared)) for run in (a, b)], cases)
    except MedThinkError as error:
        return error.problem


def make_versus_page(
    a: ShelfRun,
    b: ShelfRun,
    compared: Comparison | str,
    standings: dict[str, Standing | None],
    choices: Sequence[ShelfRun],
    query: VersusQuery,
) -> VersusPage:
    """The page of a comparison."""
    empty = VersusPage(
        a=make_line(a, standings[a.slug]),
        b=make_line(b, standings[b.slug]),
        choices=tuple((run.slug, run.name) for run in choices),
        query=query,
    )
    if isinstance(compared, str):
        return msgspec.structs.replace(empty, problem=compared)
    pair = compared.pairs[0]
    difference = pair.difference
    reach, slice_reach = _reach([difference]), _reach([one.difference for one in pair.slices])
    resolution = pair.resolution
    smallest = 0.0 if isinstance(resolution, Undefined) else resolution.difference
    return msgspec.structs.replace(
        empty,
        verdict=_verdict(a.name, b.name, pair),
        details=_details(pair, compared.n_cases, compared.method),
        caution=_caution(a, b, compared.n_cases),
        n=compared.n_cases,
        mark=_place(difference, reach, is_clear=pair.is_different),
        band=min(smallest * 100 / reach, 1.0) * _HALF,
        reach=reach,
        agreement=_agreement(a, b),
        flipped=tuple(_flipped(a, b, pair, query)),
        won=len(pair.won),
        lost=len(pair.lost),
        slices=tuple(_slices(pair, slice_reach)),
        slice_reach=slice_reach,
        differing=tuple((name, values[0], values[1]) for name, values in compared.differing.items()),
    )


def _material(run: ShelfRun, shared: list[int]) -> Material:
    assert run.bench is not None
    split = run.manifest.selection.split
    predictions = [
        Prediction(case=row.case, split=split, sample=row.sample, state=cast(State, row.state), prediction=row.letter)
        for number in shared
        for row in run.rows_of(number)
    ]
    cases = {number: run.bench.cases[number] for number in shared}
    return Material(str(run.path), run.manifest, run.manifest.text_fingerprint, cases, predictions)


def _verdict(a: str, b: str, pair: PairOfRuns) -> str:
    value = pair.difference.value or 0.0
    if not pair.is_different:
        return f"{a} and {b} cannot be told apart on these cases."
    better, worse = (a, b) if value > 0 else (b, a)
    return f"{better} is better than {worse} by {abs(value) * 100:.1f} points."


def _details(pair: PairOfRuns, n: int, method: str) -> str:
    flips = f"They differ on {len(pair.won) + len(pair.lost)} of {count_of(n, 'case')}: "
    flips += f"A is ahead on {len(pair.won)}, B on {len(pair.lost)}."
    return f"{flips} {method[:1].upper()}{method[1:]}: p {_p_value(pair.p_value)}."


def _p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _caution(a: ShelfRun, b: ShelfRun, n: int) -> str:
    unfinished = [run.name for run in (a, b) if run.activity != "finished"]
    if not unfinished:
        return ""
    return f"{' and '.join(unfinished)} not finished: compared on the {count_of(n, 'case')} that both have so far."


def _reach(differences: Sequence[Measured]) -> int:
    """How many points an axis must show on either side, in steps of five."""
    ends = [0.05]
    for one in differences:
        ends += [abs(one.low), abs(one.high)] if isinstance(one, Estimate) else [abs(one.value or 0.0)]
    return 5 * int(max(ends) * 20 + 1)


def _place(difference: Measured, reach: int, *, is_clear: bool) -> PointsMark:
    value = difference.value or 0.0
    low, high = (difference.low, difference.high) if isinstance(difference, Estimate) else (value, value)

    def x(share: float) -> float:
        return round(_HALF + share * 100 / reach * _HALF, 1)

    return PointsMark(difference=tell_difference(difference), dot=x(value), low=x(low), high=x(high), is_clear=is_clear)


def _agreement(a: ShelfRun, b: ShelfRun) -> SharedCases | None:
    """The four cells, for runs with one answer a case."""
    shared = a.rights.keys() & b.rights.keys()
    pairs = [(a.rights[case], b.rights[case]) for case in shared]
    if any(share not in (0.0, 1.0) for pair in pairs for share in pair):
        return None
    return SharedCases(
        both=pairs.count((1.0, 1.0)),
        only_a=pairs.count((1.0, 0.0)),
        only_b=pairs.count((0.0, 1.0)),
        neither=pairs.count((0.0, 0.0)),
    )


def _flipped(a: ShelfRun, b: ShelfRun, pair: PairOfRuns, query: VersusQuery) -> Iterator[FlippedCase]:
    assert a.bench is not None
    first = {line.case: line for line in reversed(make_case_lines(a, b, {}))}
    second = {line.case: line for line in reversed(make_case_lines(b, a, {}))}
    wanted = ({"a": pair.won, "b": pair.lost}).get(query.only, (*pair.won, *pair.lost))
    for number in sorted(wanted):
        images = a.bench.cases[number].question.images[:4]
        yield FlippedCase(
            a=first[number],
            b=second[number],
            images=tuple(a.bench.id_of(image) for image in images),
            winner="A" if number in pair.won else "B",
        )


def _slices(pair: PairOfRuns, reach: int) -> Iterator[SliceLine]:
    groups = {(one.by, one.value): [one] for one in pair.slices}
    for (by, value), (one,) in sort_slices(groups).items():
        yield SliceLine(by=by, value=value, n=one.n, mark=_place(one.difference, reach, is_clear=one.is_different))
