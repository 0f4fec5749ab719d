"""Two runs side by side: the paired verdict, the discordant cases, the slices, and the differences between the runs."""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from medthink.core.errors import MedThinkError
from medthink.core.numbers import count_of
from medthink.scoring.compare import Comparison, PairOfRuns, compare_runs
from medthink.scoring.inputs import ScoringInput
from medthink.scoring.score import score_letters
from medthink.web.app.pairs import PairFigures, choose_flipped, show_pair, tell_p_value
from medthink.web.app.query import Query
from medthink.web.runs.accuracy import RunAccuracy
from medthink.web.runs.index import IndexedRun
from medthink.web.runs.run_page import CaseLine, list_rows, make_case_lines
from medthink.web.runs.runs_page import RunLine, make_line
from medthink.workflow.ask import State
from medthink.workflow.prediction import Prediction


class VersusQuery(Query, frozen=True, kw_only=True):
    """The filter of discordant cases: all, `a` or `b`."""

    only: str = ""


class FlippedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A discordant case: one of the runs gets it right more often."""

    a: CaseLine
    b: CaseLine
    images: tuple[str, ...]
    winner: str


class VersusPage(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison, or `problem`, the reason why there is none."""

    a: RunLine
    b: RunLine
    choices: tuple[tuple[str, str], ...]
    query: VersusQuery
    problem: str = ""
    pair: PairFigures | None = None
    caution: str = ""
    flipped: tuple[FlippedCase, ...] = ()
    differing: tuple[tuple[str, str, str], ...] = ()


def compare_two_runs(a: IndexedRun, b: IndexedRun) -> Comparison | str:
    """The comparison on the cases both have so far, or the reason why there is none."""
    if a is b:
        return "Both are the same run. Choose another one."
    if not a.rights or not b.rights:
        lacking = a if not a.rights else b
        return lacking.doubt or f"{lacking.name} has no answers by letter yet."
    shared = sorted(a.rights.keys() & b.rights.keys())
    if a.bench is None or a.group[0] != b.group[0] or not shared:
        return f"{a.name} and {b.name} have no cases in common: they are on different benchmarks or different cases."
    cases = {number: a.bench.cases[number] for number in shared}
    try:
        return compare_runs([score_letters(_material(run, shared)) for run in (a, b)], cases)
    except MedThinkError as error:
        return error.problem


def make_versus_page(
    a: IndexedRun,
    b: IndexedRun,
    compared: Comparison | str,
    standings: dict[str, RunAccuracy | None],
    choices: Sequence[IndexedRun],
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
    found = compared.pairs[0]
    rights = ((a.rights[case], b.rights[case]) for case in a.rights.keys() & b.rights.keys())
    return msgspec.structs.replace(
        empty,
        pair=show_pair((a.name, b.name), compared, rights, _details(found, compared.n_cases, compared.method)),
        caution=_caution(a, b, compared.n_cases),
        flipped=tuple(_flipped(a, b, found, query)),
        differing=tuple((name, values[0], values[1]) for name, values in compared.differing.items()),
    )


def _material(run: IndexedRun, shared: list[int]) -> ScoringInput:
    assert run.bench is not None
    split = run.manifest.selection.split
    predictions = [
        Prediction(
            case=row.case, split=split, sample=row.sample, state=cast(State, row.state), prediction=row.prediction
        )
        for number in shared
        for row in run.rows_of(number)
    ]
    cases = {number: run.bench.cases[number] for number in shared}
    return ScoringInput(str(run.path), run.manifest, run.manifest.text_fingerprint, cases, predictions)


def _details(pair: PairOfRuns, n: int, method: str) -> str:
    flips = f"They differ on {len(pair.won) + len(pair.lost)} of {count_of(n, 'case')}: "
    flips += f"A is better on {len(pair.won)}, B on {len(pair.lost)}."
    return f"{flips} {method[:1].upper()}{method[1:]}: p {tell_p_value(pair.p_value)}."


def _caution(a: IndexedRun, b: IndexedRun, n: int) -> str:
    unfinished = [run.name for run in (a, b) if run.activity != "finished"]
    if not unfinished:
        return ""
    return f"{' and '.join(unfinished)} not finished: compared on the {count_of(n, 'case')} that both have so far."


def _flipped(a: IndexedRun, b: IndexedRun, pair: PairOfRuns, query: VersusQuery) -> Iterator[FlippedCase]:
    assert a.bench is not None
    first = {line.case: line for line in reversed(make_case_lines(a, list_rows(a), b, {}))}
    second = {line.case: line for line in reversed(make_case_lines(b, list_rows(b), a, {}))}
    for number in sorted(choose_flipped(pair, query.only)):
        images = a.bench.cases[number].question.images[:4]
        yield FlippedCase(
            a=first[number],
            b=second[number],
            images=tuple(a.bench.id_of(image) for image in images),
            winner="A" if number in pair.won else "B",
        )
