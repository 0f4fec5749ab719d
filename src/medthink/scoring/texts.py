"""Written steps against the expert's text: findings per image, the integrated summary, the discussion.

One policy for every metric: a text that is missing or empty is scored as an empty one, as an answer that is missing
counts as wrong, so that leaving texts out never helps; beside it is the mean over the texts that were written. Means
are taken from image to case to benchmark, so that a case with many images weighs no more than one with few; the
interval is a bootstrap over cases.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from medthink.metrics.registry import Columns, all_metrics, score_pairs
from medthink.scoring.inputs import ScoringInput
from medthink.scoring.radcliq import NAMES, RadCliQOptions, compute_radcliq
from medthink.scoring.scores import MetricScore, TextScores
from medthink.stats.bootstrap import replicate_interval, resample_totals
from medthink.stats.estimate import Measured, Undefined
from medthink.workflow.written_text import TextPair

SCORED_STATES = ("ok", "missing", "empty")
LEVEL = 0.95
RESAMPLES = 10_000
GROUP_RESAMPLES = 2_000


Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class CaseMeans(NamedTuple):
    """Every metric's mean for every case: two columns of `sums` per metric, its values and whether they are known."""

    names: tuple[str, ...]
    cases: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    sums: Array

    def by_case(self) -> dict[str, dict[int, float]]:
        """Every metric's mean for each case that has one."""
        cases = self.cases.tolist()
        return {
            name: {case: value for case, value, known in zip(cases, *self._columns(i), strict=True) if known}
            for i, name in enumerate(self.names)
        }

    def _columns(self, index: int) -> tuple[list[float], list[float]]:
        return self.sums[:, 2 * index].tolist(), self.sums[:, 2 * index + 1].tolist()


def case_means(columns: Columns, cases: Sequence[int]) -> CaseMeans:
    """From values of pairs to means of cases."""
    order, rows = np.unique(np.asarray(cases, dtype=np.int64), return_inverse=True)
    sums = np.zeros((len(order), 2 * len(columns)))
    for place, values in enumerate(columns.values()):
        array = np.array(values, dtype=np.float64)  # None becomes NaN
        known = ~np.isnan(array)
        counts = np.bincount(rows[known], minlength=len(order))
        totals = np.bincount(rows[known], weights=array[known], minlength=len(order))
        sums[:, 2 * place] = np.divide(totals, counts, out=np.zeros(len(order)), where=counts > 0)
        sums[:, 2 * place + 1] = counts > 0
    return CaseMeans(tuple(columns), order, sums)


def score_texts(
    step: str, pairs: Iterable[TextPair], *, rng: np.random.Generator, radcliq: RadCliQOptions | None = None
) -> TextScores:
    """Every text metric over the pairs with a reference, over those that were written, and how many there are."""
    listed = list(pairs)
    # In a fixed order, because the last digits of float sums depend on it.
    usable = sorted(pair for pair in listed if pair.state in SCORED_STATES)
    columns = score_pairs([pair.reference for pair in usable], [pair.candidate for pair in usable])
    composites = compute_radcliq(usable, radcliq)
    columns |= composites.columns
    groups = sorted({pair.group for pair in usable if pair.group})
    means = case_means(columns, [pair.case for pair in usable])
    # A child's draws: how many texts are missing changes none of those that follow.
    written = _score_written(columns, usable, rng=rng.spawn(1)[0])
    metrics = _mean_scores(means, rng=rng)
    return TextScores(
        step=step,
        states=dict(sorted(Counter(pair.state for pair in listed).items())),
        metrics=(
            *(replace(one, of_written=written.get(one.metric, one.value)) for one in metrics),
            *_not_computed(composites.not_computed),
        ),
        by_group={group: _score_group(columns, usable, group, rng=rng) for group in groups},
        case_values=means.by_case(),
        radcliq=composites.fingerprint or UNSET,
    )


def score_coverage(material: ScoringInput, *, rng: np.random.Generator) -> TextScores:
    """The metrics of whole discussions with their headings; a missing discussion counts as empty."""
    references = [material.cases[one.case].reference.discussion for one in material.predictions]
    written = [
        "\n\n".join(f"{name.replace('_', ' ')}:\n{text}" for name, text in (one.discussion or {}).items())
        for one in material.predictions
    ]
    columns: Columns = {
        metric.name: list(metric.function(references, written))
        for metric in all_metrics().values()
        if metric.kind == "discussions"
    }
    means = case_means(columns, [one.case for one in material.predictions])
    return TextScores(step="discussion", states={}, metrics=_mean_scores(means, rng=rng), case_values=means.by_case())


def _not_computed(reason: str) -> tuple[MetricScore, ...]:
    if not reason:
        return ()
    metrics = all_metrics()
    return tuple(
        MetricScore(metric=name, version=metrics[name].version, direction=metrics[name].direction, not_computed=reason)
        for name in NAMES
    )


def _score_written(columns: Columns, usable: list[TextPair], *, rng: np.random.Generator) -> dict[str, Measured | None]:
    """Every metric's mean over the texts that were written; nothing where that is all of them."""
    rows = [place for place, pair in enumerate(usable) if pair.state == "ok"]
    if len(rows) == len(usable):
        return {}
    part: Columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    return {
        one.metric: one.value for one in _mean_scores(case_means(part, [usable[row].case for row in rows]), rng=rng)
    }


def _score_group(
    columns: Columns, usable: list[TextPair], group: str, *, rng: np.random.Generator
) -> tuple[MetricScore, ...]:
    rows = [place for place, pair in enumerate(usable) if pair.group == group]
    part: Columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    return _mean_scores(case_means(part, [usable[row].case for row in rows]), rng=rng, resamples=GROUP_RESAMPLES)


def _mean_scores(means: CaseMeans, *, rng: np.random.Generator, resamples: int = RESAMPLES) -> tuple[MetricScore, ...]:
    """The mean over cases of every metric, all from the same resampled cases."""
    sums = means.sums
    drawn = resample_totals(sums, resamples=resamples, rng=rng) if len(means.cases) > 1 else None
    return tuple(
        _score(name, sums[:, 2 * i], sums[:, 2 * i + 1], _columns(drawn, i)) for i, name in enumerate(means.names)
    )


def _columns(drawn: Array | None, index: int) -> tuple[Array, Array] | None:
    return None if drawn is None else (drawn[:, 2 * index], drawn[:, 2 * index + 1])


def _score(name: str, values: Array, known: Array, drawn: tuple[Array, Array] | None) -> MetricScore:
    # RadCliQ's components are parts of it, not metrics of their own: higher is better for each.
    metric = all_metrics().get(name)
    return MetricScore(
        metric=name,
        version=metric.version if metric else all_metrics()["radcliq_v1"].version,
        direction=metric.direction if metric else "higher",
        value=_estimate(values, known, drawn),
    )


def _estimate(values: Array, known: Array, drawn: tuple[Array, Array] | None) -> Measured:
    n = int(known.sum())
    if n == 0:
        return Undefined(reason="no pair has a value", n=0)
    value = float(values.sum() / n)
    if drawn is None or n < 2:
        return Undefined(reason="one case shows no spread", n=n, value=value)
    with np.errstate(invalid="ignore"):
        replicates = drawn[0] / drawn[1]
    return replicate_interval(value, replicates, n=n, groups=n, level=LEVEL, method="percentile bootstrap over cases")
