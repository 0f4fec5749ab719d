"""Runs on the same cases, compared as one family: differences, flipped cases, ranks, and the detectable difference."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from medthink.cases.case import Case
from medthink.cases.slices import SMALL, group_by_slice, slice_cases
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.numbers import NOTHING
from medthink.metrics.answers import most_frequent
from medthink.scoring.comparable import cases_rng, rank_together, share_kind, why_incomparable
from medthink.scoring.inputs import load_all, restrict_to_cases
from medthink.scoring.score import cached_scores, score_letters
from medthink.scoring.scores import PartialRun, Scores, samples_per_case
from medthink.stats.comparisons.differences import compare_in_parts
from medthink.stats.comparisons.ranks import Ranking
from medthink.stats.estimate import Floats, Measured, Undefined
from medthink.stats.intervals import share_interval
from medthink.stats.items import ItemTable, SuspectKeys, item_table, suspect_keys
from medthink.stats.power import Resolution, minimum_detectable_difference

MOST_SLICED = 12
"""Slices are compared among at most this many runs; a table cannot show more."""

Rights = np.ndarray[tuple[int], np.dtype[np.float64]]
"""The share of right answers of every case."""


class SliceDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference in one slice; verdict, interval and p-value are adjusted for all slices of all pairs."""

    by: str
    value: str
    n: int
    difference: Measured
    p_value: float
    is_different: bool


class PairOfRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Run `a` minus run `b`: the difference and its verdict, the flipped cases, and the detectable difference.

    Verdict, interval and p-value are adjusted for all pairs compared; `statistic` is McNemar's z for right and wrong.
    """

    a: str
    b: str
    difference: Measured
    statistic: float
    p_value: float
    is_different: bool
    won: tuple[int, ...]
    lost: tuple[int, ...]
    resolution: Resolution | Undefined
    slices: tuple[SliceDifference, ...]


class SampledRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that asked the same of one model, with the accuracy that they have as samples of one run."""

    runs: tuple[str, ...]
    accuracy: Measured


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs on the same cases, compared as one family.

    `ranking` is None for two runs and for runs of several kinds. A p-value equal to `p_floor` means "this or less".
    `partial` gives the progress of each unfinished run: `n_cases` are those that all have. `states` counts each run's
    answers by state; `samples` are runs that might as well be one run with several samples a case.
    """

    runs: tuple[str, ...]
    n_cases: int
    differing: dict[str, tuple[str, ...]]
    pairs: tuple[PairOfRuns, ...]
    ranking: Ranking | None
    method: str
    p_floor: float
    partial: dict[str, PartialRun] = {}
    states: dict[str, dict[str, int]] = {}
    samples: tuple[SampledRuns, ...] = ()

    def __repr__(self) -> str:
        different = sum(pair.is_different for pair in self.pairs)
        return f"Comparison({len(self.runs)} runs, {self.n_cases} cases: {different} of {len(self.pairs)} pairs differ)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("runs", len(self.runs)), ("cases", self.n_cases), ("pairs", len(self.pairs))]

    def _repr_html_(self) -> str:
        from medthink.scoring.tables import comparison_card

        return comparison_card(self)


def compare_paths(paths: Sequence[Path], data: Path | None = None, *, split: str = "test") -> Comparison:
    """Compare runs or submission files by path; scores that are still valid are reused."""
    return compare_loaded(load_scored(paths, data, split=split))


class ComparisonInput(NamedTuple):
    """The input of a comparison: the scores of every run, the cases all have, and the progress of unfinished runs."""

    scored: list[Scores]
    cases: dict[int, Case]
    partial: dict[str, PartialRun]


def load_scored(paths: Sequence[Path], data: Path | None = None, *, split: str = "test") -> ComparisonInput:
    """Runs and files with their scores; if one is unfinished, on the cases that all of them have."""
    materials = load_all(paths, data, split=split)
    partial = {one.name: one.partial for one in materials if one.partial is not None}
    if not partial or len({one.due for one in materials}) > 1:
        scored = [cached_scores(path, material) for path, material in zip(paths, materials, strict=True)]
        return ComparisonInput(scored, materials[0].cases, partial)
    shared = frozenset.intersection(*(frozenset(one.cases) for one in materials))
    if not shared:
        raise UsageError("the runs have no finished cases in common", remedy="wait for more cases, then compare")
    common = [restrict_to_cases(material, shared) for material in materials]
    return ComparisonInput([score_letters(material) for material in common], common[0].cases, partial)


def compare_loaded(loaded: ComparisonInput) -> Comparison:
    """Compare every run with every other; the result lists unfinished ones."""
    return msgspec.structs.replace(compare_runs(loaded.scored, loaded.cases), partial=loaded.partial)


def compare_runs(scored: Sequence[Scores], cases: dict[int, Case]) -> Comparison:
    """Compare every run with every other, paired by case; runs that cannot be compared are refused."""
    refuse_incomparable(scored)
    ids = [one.case for one in scored[0].cases]
    matrix = np.array([[one.right for one in scores.cases] for scores in scored])
    family = rank_together(matrix, ids)
    slices = _compare_slices(ids, matrix, cases)
    return Comparison(
        runs=tuple(one.origin.name for one in scored),
        n_cases=len(ids),
        differing=_differing(scored),
        pairs=tuple(
            PairOfRuns(
                a=scored[pair.a].origin.name,
                b=scored[pair.b].origin.name,
                difference=pair.difference,
                statistic=pair.statistic,
                p_value=pair.p_value,
                is_different=pair.is_different,
                won=_cases_where(ids, matrix[pair.a] > matrix[pair.b]),
                lost=_cases_where(ids, matrix[pair.a] < matrix[pair.b]),
                resolution=detectable_difference(matrix[pair.a], matrix[pair.b], threshold=family.power_z),
                slices=slices.get((pair.a, pair.b), ()),
            )
            for pair in family.pairs
        ),
        ranking=_with_scored_means(family, scored) if len(scored) > 2 and share_kind(scored) else None,
        method=family.method,
        p_floor=family.p_floor,
        states={one.origin.name: one.answers.states for one in scored if one.answers},
        samples=tuple(find_samples(scored)),
    )


def refuse_incomparable(scored: Sequence[Scores]) -> None:
    """Raise UsageError with the reason if runs are not comparable."""
    if len(scored) < 2:
        raise UsageError("a comparison needs two runs", remedy="name another one")
    if len({one.origin.name for one in scored}) < len(scored):
        raise UsageError("a run was given twice", remedy="name every run once")
    for one, other in combinations(scored, 2):
        if why := why_incomparable(one, other):
            raise UsageError(
                f"{one.origin.name} and {other.origin.name} cannot be compared: {why}",
                remedy="compare runs of the same benchmark, cases and kind",
            )


def find_samples(scored: Sequence[Scores]) -> Iterator[SampledRuns]:
    """The runs with the same model, task, condition and prompts; submission files do not say what was asked."""
    alike: dict[str, list[Scores]] = {}
    for one in scored:
        if one.origin.condition is not None:
            asked = [one.origin.model, one.origin.task, one.origin.condition, one.origin.prompts]
            alike.setdefault(digest_value(asked), []).append(one)
    for runs in (found for found in alike.values() if len(found) > 1):
        shares = np.mean([[case.right for case in one.cases] for one in runs], axis=0)
        yield SampledRuns(
            runs=tuple(one.origin.name for one in runs),
            accuracy=share_interval(shares, samples=sum(map(samples_per_case, runs))),
        )


def _cases_where(ids: list[int], chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[int, ...]:
    return tuple(ids[row] for row in np.flatnonzero(chosen))


def detectable_difference(
    right_a: Rights, right_b: Rights, *, threshold: float | None = None
) -> Resolution | Undefined:
    """The difference these cases can show between two runs that disagree this much; also for shares over samples.

    `threshold` is the `power_z` of the ranking of all runs compared.
    """
    gaps = np.abs(np.asarray(right_a) - np.asarray(right_b))
    if not gaps.any():
        return Undefined(reason="the runs agree on every case", n=len(gaps))
    # Rounded, so that the many pairs of many runs can share one computation; a difference in one sample stays above 0.
    discordance, largest = (float(f"{np.mean(part):.4g}") for part in (gaps**2, gaps))
    return minimum_detectable_difference(n=len(gaps), discordance=discordance, largest=largest, threshold=threshold)


def _compare_slices(
    ids: list[int], matrix: Floats, cases: dict[int, Case]
) -> dict[tuple[int, int], tuple[SliceDifference, ...]]:
    """Every slice that is large enough, for every pair of runs; adjusted over all of them."""
    if len(matrix) > MOST_SLICED:
        return {}
    members = group_by_slice(((case_id, row) for row, case_id in enumerate(ids)), slice_cases(cases.values()))
    large = [(key, rows) for key, rows in members.items() if len(rows) >= SMALL]
    found: dict[tuple[int, int], list[SliceDifference]] = {}
    for one in compare_in_parts(matrix, [rows for _, rows in large], rng=cases_rng(ids)):
        (by, value), rows = large[one.part]
        found.setdefault((one.a, one.b), []).append(
            SliceDifference(
                by=by,
                value=value,
                n=len(rows),
                difference=one.difference,
                p_value=one.p_value,
                is_different=one.is_different,
            )
        )
    return {pair: tuple(listed) for pair, listed in found.items()}


def _with_scored_means(ranking: Ranking, scored: Sequence[Scores]) -> Ranking:
    """The scored accuracy, so that a run has the same interval wherever it is shown."""
    runs = (
        msgspec.structs.replace(place, mean=answers.accuracy)
        for place in ranking.runs
        if (answers := scored[place.run].answers) is not None
    )
    return msgspec.structs.replace(ranking, runs=tuple(runs))


def _differing(scored: Sequence[Scores]) -> dict[str, tuple[str, ...]]:
    """The fields in which the runs differ, with each run's value; a dash where a submission file does not say."""
    fields: dict[str, tuple[str, ...]] = {}
    for name in ("model", "task", "kind"):
        fields[name] = tuple(str(getattr(one.origin, name)) for one in scored)
    conditions = [one.origin.condition or {} for one in scored]
    for name in dict.fromkeys(key for condition in conditions for key in condition):
        fields[name] = tuple(str(condition.get(name, NOTHING)) for condition in conditions)
    for name in dict.fromkeys(kind for one in scored for kind in one.origin.prompts):
        fields[f"{name} prompt"] = tuple(one.origin.prompts.get(name, NOTHING)[:12] for one in scored)
    return {name: values for name, values in fields.items() if len(set(values) - {NOTHING}) > 1}


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """Difficulty and discrimination by case, one vote per model, and the reading list of suspect keys.

    `suspects` is None where fewer than six models are compared; `vendors` counts the voters' vendors, and is None if a
    file of predictions, which does not state its vendor, is among them.
    """

    models: tuple[str, ...]
    table: ItemTable
    suspects: SuspectKeys | None
    vendors: int | None


def view_items(scored: Sequence[Scores], comparison: Comparison) -> ItemView:
    """The item view of runs that were compared; several runs of one model are averaged to its one vote."""
    if comparison.ranking is None:
        raise UsageError("viewing items needs at least three runs of one kind", remedy="name more runs")
    by_model: dict[str, list[Scores]] = {}
    for one in scored:
        by_model.setdefault(one.origin.model, []).append(one)
    models = sorted(by_model)
    ids = [case.case for case in scored[0].cases]
    means = np.array(
        [np.mean([[case.right for case in one.cases] for one in by_model[model]], axis=0) for model in models]
    )
    leading = {scored[place.run].origin.model for place in comparison.ranking.runs if place.is_leader}
    suspects = suspect_keys(
        {model: _votes(by_model[model]) for model in models},
        {case.case: case.gold for case in scored[0].cases},
        accuracies=dict(zip(models, means.mean(axis=1).tolist(), strict=True)),
    )
    return ItemView(
        models=tuple(models),
        table=item_table(means, cases=ids, leaders=[k for k, model in enumerate(models) if model in leading]),
        suspects=suspects,
        vendors=_vendors(suspects.voters if suspects else (), by_model),
    )


def _vendors(voters: Sequence[str], by_model: Mapping[str, Sequence[Scores]]) -> int | None:
    if any(one.origin.condition is None for model in voters for one in by_model[model]):
        return None
    return len({model.partition("/")[0] for model in voters})


def _votes(runs: Sequence[Scores]) -> dict[int, str | None]:
    """A model's most frequent letter for each case; None if there is a tie or no answer."""
    given: dict[int, list[str]] = {}
    for one in runs:
        for case in one.cases:
            given.setdefault(case.case, []).extend(letter for letter in case.letters if letter is not None)
    return {case: most_frequent(letters) for case, letters in given.items()}
