"""Runs on the same cases, set side by side: differences with intervals, flipped cases, ranks, and what n can tell."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from medthink.cases.case import Case
from medthink.cases.slices import SMALL, group_by_slice, slice_cases
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.scoring.material import load_all
from medthink.scoring.score import kept_scores
from medthink.scoring.scores import Scores
from medthink.stats.estimate import Measured, Undefined
from medthink.stats.multiple import holm
from medthink.stats.paired import PairedComparison, compare_pair, paired_difference, sign_flip_test
from medthink.stats.power import Resolution, minimum_detectable_difference
from medthink.stats.ranks import Ranking, rank_runs

ALPHA = 0.05
Rights = np.ndarray[tuple[int], np.dtype[np.float64]]
"""The share of right answers of every case."""


class SliceDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference in one slice; `p_holm` is corrected over all slices of the comparison."""

    by: str
    value: str
    n: int
    difference: Measured
    p_value: float
    p_holm: float

    @property
    def is_different(self) -> bool:
        """Whether the difference holds after correction for all slices compared."""
        return self.p_holm < ALPHA


class PairOfRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Run `a` minus run `b`: the comparison, the cases that flipped, and what difference n could have shown."""

    a: str
    b: str
    comparison: PairedComparison
    p_holm: float
    won: tuple[int, ...]
    lost: tuple[int, ...]
    resolution: Resolution | Undefined
    slices: tuple[SliceDifference, ...]

    @property
    def is_different(self) -> bool:
        """Whether the difference holds after correction for all pairs compared."""
        return self.p_holm < ALPHA


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs on the same cases; `ranking` is None for two, for a single case and for runs of several kinds."""

    runs: tuple[str, ...]
    n_cases: int
    differing: dict[str, tuple[str, ...]]
    pairs: tuple[PairOfRuns, ...]
    ranking: Ranking | None

    def __repr__(self) -> str:
        different = sum(pair.is_different for pair in self.pairs)
        return f"Comparison({len(self.runs)} runs, {self.n_cases} cases: {different} of {len(self.pairs)} pairs differ)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("runs", len(self.runs)), ("cases", self.n_cases), ("pairs", len(self.pairs))]

    def _repr_html_(self) -> str:
        from medthink.scoring.tables import comparison_card

        return comparison_card(self)


def compare_paths(paths: Sequence[Path], data: Path | None = None, *, split: str = "test") -> Comparison:
    """Compare runs or submission files where they lie; scores that are still true are not made again."""
    materials = load_all(paths, data, split=split)
    scored = [kept_scores(path, material) for path, material in zip(paths, materials, strict=True)]
    return compare_runs(scored, materials[0].cases)


def compare_runs(scored: Sequence[Scores], cases: dict[int, Case]) -> Comparison:
    """Compare every run with every other, paired by case; runs that cannot be compared are refused."""
    refuse_incomparable(scored)
    rng = np.random.default_rng(seed_from("compare", scored[0].origin.text_fingerprint))
    pairs = [_compare(a, b, cases, rng) for a, b in combinations(scored, 2)]
    corrected = holm([pair.comparison.sign_flip.p_value for pair in pairs])
    return Comparison(
        runs=tuple(one.origin.name for one in scored),
        n_cases=len(scored[0].cases),
        differing=_differing(scored),
        pairs=tuple(msgspec.structs.replace(pair, p_holm=float(p)) for pair, p in zip(pairs, corrected, strict=True)),
        ranking=_rank(scored, rng),
    )


def refuse_incomparable(scored: Sequence[Scores]) -> None:
    """Raise UsageError, naming the field, when runs are not about the same thing."""
    if len(scored) < 2:
        raise UsageError("a comparison needs two runs", remedy="name another one")
    if len({one.origin.name for one in scored}) < len(scored):
        raise UsageError("a run is given twice", remedy="name every run once")
    for one, other in combinations(scored, 2):
        field = _incomparable_field(one, other)
        if field:
            raise UsageError(
                f"{one.origin.name} and {other.origin.name} cannot be compared: {field} differs",
                remedy="compare runs of the same benchmark, cases and kind",
            )


def _incomparable_field(a: Scores, b: Scores) -> str:
    """The first field that makes two runs incomparable, or ""."""
    if a.origin.text_fingerprint != b.origin.text_fingerprint:
        return "the benchmark's fingerprint (text_fingerprint)"
    if None not in (a.origin.fingerprint, b.origin.fingerprint) and a.origin.fingerprint != b.origin.fingerprint:
        return "the benchmark's fingerprint (images)"
    if not a.cases or not b.cases:
        return "whether there are letters to compare (task or show_options)"
    if [one.case for one in a.cases] != [one.case for one in b.cases]:
        return "the selection of cases"
    # An expert's cues may be compared with none to see what they are worth to one model; never across two models.
    if comparable_kind(a) != comparable_kind(b) and a.origin.model != b.origin.model:
        return f"the kind of condition ({a.origin.kind}, {b.origin.kind})"
    return ""


def comparable_kind(scores: Scores) -> str:
    """The kind of condition; a submission, which states none, is taken to be unaided, as the card's rules ask."""
    return "unaided" if scores.origin.kind == "submitted" else scores.origin.kind


def _compare(a: Scores, b: Scores, cases: dict[int, Case], rng: np.random.Generator) -> PairOfRuns:
    ids = [one.case for one in a.cases]
    right_a, right_b = (np.array([one.right for one in scores.cases]) for scores in (a, b))
    comparison = compare_pair(right_a, right_b, rng=rng, clusters=ids)
    return PairOfRuns(
        a=a.origin.name,
        b=b.origin.name,
        comparison=comparison,
        p_holm=1.0,
        won=tuple(case for case, x, y in zip(ids, right_a, right_b, strict=True) if x > y),
        lost=tuple(case for case, x, y in zip(ids, right_a, right_b, strict=True) if x < y),
        resolution=resolve(right_a, right_b),
        slices=_compare_slices(ids, right_a - right_b, cases, rng),
    )


def resolve(right_a: Rights, right_b: Rights, *, threshold: float | None = None) -> Resolution | Undefined:
    """What difference these cases can show between two runs that disagree as much as these; shares over samples too.

    `threshold` is that of the ranking where more than two runs are compared.
    """
    gaps = np.abs(np.asarray(right_a) - np.asarray(right_b))
    if not gaps.any():
        return Undefined(reason="the runs agree on every case", n=len(gaps))
    return minimum_detectable_difference(
        n=len(gaps), discordance=float(np.mean(gaps**2)), largest=float(np.mean(gaps)), threshold=threshold
    )


def _compare_slices(
    ids: list[int], differences: Rights, cases: dict[int, Case], rng: np.random.Generator
) -> tuple[SliceDifference, ...]:
    """Every slice that is large enough, its p-value corrected over all of them."""
    members = group_by_slice(((case_id, row) for row, case_id in enumerate(ids)), slice_cases(cases.values()))
    large = {key: rows for key, rows in members.items() if len(rows) >= SMALL}
    found = []
    for (by, value), rows in large.items():
        part = differences[rows]
        zeros, labels = np.zeros(len(rows)), [ids[row] for row in rows]
        found.append(
            SliceDifference(
                by=by,
                value=value,
                n=len(rows),
                difference=paired_difference(part, zeros, rng=rng, clusters=labels, resamples=2_000),
                p_value=sign_flip_test(part, zeros, rng=rng, clusters=labels).p_value,
                p_holm=1.0,
            )
        )
    if not found:
        return ()
    corrected = holm([one.p_value for one in found])
    return tuple(msgspec.structs.replace(one, p_holm=float(p)) for one, p in zip(found, corrected, strict=True))


def _rank(scored: Sequence[Scores], rng: np.random.Generator) -> Ranking | None:
    # Unaided and cued runs may be paired to see what cues are worth, but have no place on one list.
    if len(scored) < 3 or len(scored[0].cases) < 2 or len({comparable_kind(one) for one in scored}) > 1:
        return None
    matrix = [[one.right for one in scores.cases] for scores in scored]
    ranking = rank_runs(matrix, cases=[one.case for one in scored[0].cases], rng=rng)
    # The accuracy as it is scored, so that one run has one interval wherever it is shown.
    runs = (
        msgspec.structs.replace(place, mean=answers.accuracy)
        for place in ranking.runs
        if (answers := scored[place.run].answers) is not None
    )
    return msgspec.structs.replace(ranking, runs=tuple(runs))


def _differing(scored: Sequence[Scores]) -> dict[str, tuple[str, ...]]:
    """The fields in which the runs differ, value by run: what the comparison is about, in the open."""
    fields: dict[str, tuple[str, ...]] = {}
    for name in ("model", "task", "kind"):
        fields[name] = tuple(str(getattr(one.origin, name)) for one in scored)
    conditions = [one.origin.condition or {} for one in scored]
    for name in dict.fromkeys(key for condition in conditions for key in condition):
        fields[name] = tuple(str(condition.get(name, "–")) for condition in conditions)
    for name in dict.fromkeys(kind for one in scored for kind in one.origin.prompts):
        fields[f"{name} prompt"] = tuple(one.origin.prompts.get(name, "–")[:12] for one in scored)
    return {name: values for name, values in fields.items() if len(set(values)) > 1}
