"""Agreement of any number of raters with missing labels."""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import ClusterReplicates
from medthink.stats.estimate import Floats, Ints, Measured, cluster_totals
from medthink.stats.raters import agreement
from medthink.stats.raters.agreement import Label, Scale, code_labels, known_categories

Ratings = Sequence[Sequence[Label | None]]

NO_PAIRS = "no row has two raters, or fewer than two categories"


class PanelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of any number of raters; each may have skipped rows."""

    n: int
    clusters: int
    categories: tuple[Label, ...]
    prevalence: tuple[float, ...]
    percent: Measured
    ac1: Measured
    alpha: Measured


def _coded_panel(ratings: Ratings, categories: Sequence[Label] | None) -> tuple[Ints, tuple[Label, ...]]:
    rows = [list(row) for row in ratings]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("every row needs an entry for every rater; None marks a missing label")
    flat = [label for row in rows for label in row]
    known = known_categories({label for label in flat if label is not None}, categories)
    return code_labels(flat, known).reshape(len(rows), -1 if flat else 0), known


def _row_counts(codes: Ints, k: int) -> Floats:
    """How many raters put each row in each category (rows × K)."""
    counts: Floats = (codes[:, :, None] == np.arange(k)).sum(axis=1).astype(np.float64)
    return counts


def _coincidences(counts: Floats) -> Floats:
    """Each row's share of the coincidence table (rows × K × K): its ordered pairs, over its raters less one."""
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    used = np.where(raters > 1, raters - 1, np.inf)
    return pairs / used[:, None, None]


def _features(counts: Floats) -> Floats:
    """Per row, the terms of every coefficient: coincidences, agreement and its count, shares and their count."""
    n, k = counts.shape
    raters = counts.sum(axis=1)
    paired, rated = raters > 1, raters > 0
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.where(paired, raters * (raters - 1), np.inf)
    shares = counts / np.where(rated, raters, np.inf)[:, None]
    return np.column_stack([_coincidences(counts).reshape(n, k * k), agreeing, paired, shares, rated])


def panel_agreement(
    ratings: Ratings,
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    categories: Sequence[Label] | None = None,
    scale: Scale = "nominal",
    level: float = 0.95,
    resamples: int = 2_000,
) -> PanelAgreement:
    """Mean pairwise agreement, Gwet's AC1 and Krippendorff's α of rows × raters, None marking gaps.

    Percent and AC1 average over rows with two raters or more; category shares over all rated rows, each
    row counting once (Gwet 2014). `scale` applies to α.
    """
    codes, known = _coded_panel(ratings, categories)
    k, n = len(known), len(codes)
    totals = cluster_totals(_features(_row_counts(codes, k)), clusters)
    drawn = ClusterReplicates(totals.sums, n, rng=rng, level=level, resamples=resamples)

    def percents(sums: Floats) -> Floats:
        return np.where(sums[..., k * k + 1] > 0, sums[..., k * k] / np.maximum(sums[..., k * k + 1], 1), np.nan)

    def shares(sums: Floats) -> Floats:
        return sums[..., k * k + 2 : -1] / np.maximum(sums[..., -1:], 1)

    def alphas(sums: Floats) -> Floats:
        return agreement.alphas(sums[..., : k * k].reshape(*sums.shape[:-1], k, k), scale)

    return PanelAgreement(
        n=n,
        clusters=drawn.groups,
        categories=known,
        prevalence=tuple(shares(drawn.total).tolist()),
        percent=drawn.measure(percents, NO_PAIRS),
        ac1=drawn.measure(lambda sums: agreement.gwets(percents(sums), shares(sums), "identity"), NO_PAIRS),
        alpha=drawn.measure(alphas, "all paired labels are of one category"),
    )


FEWEST_RATERS = 3
"""With two raters who differ, it is unknown which one erred."""

_STEPS = 200
# A prior of two right labels and one wrong keeps a rater's error rate above 0 and below a half.
_RIGHT, _WRONG = 2.0, 1.0


class LoneLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A rater's label that all others contradict; `doubt` is the chance that the rater, not the others, erred."""

    rater: int
    item: int
    others: int
    doubt: float


def lone_labels(labels: npt.ArrayLike) -> list[LoneLabel]:
    """The labels that two or more others all contradict, the most doubtful first.

    `labels` are raters × items of 0 and 1, NaN where there is no label. How likely each rater errs, on items of either
    kind, is learnt from all labels at once (Dawid and Skene 1979, by expectation and maximisation). It assumes that
    raters err independently given the truth: where they share an error the doubt is too high.
    """
    table = np.asarray(labels, dtype=np.float64)
    said = ~np.isnan(table)
    truth = _truths(table, said)
    found = []
    for item in np.flatnonzero(said.sum(axis=0) >= FEWEST_RATERS):
        raters = np.flatnonzero(said[:, item])
        votes = table[raters, item]
        for value in (0.0, 1.0):
            alone = raters[votes == value]
            if len(alone) == 1:
                doubt = float(truth[item] if value == 0 else 1 - truth[item])
                found.append(LoneLabel(rater=int(alone[0]), item=int(item), others=len(raters) - 1, doubt=doubt))
    return sorted(found, key=lambda one: (-one.doubt, one.item, one.rater))


def _truths(table: Floats, said: npt.NDArray[np.bool_]) -> Floats:
    """The chance that each item is a 1."""
    filled = np.where(said, table, 0.0)
    truth: Floats = filled.sum(axis=0) / np.maximum(said.sum(axis=0), 1)
    for _ in range(_STEPS):
        rate = (truth.sum() + 1) / (len(truth) + 2)
        hits = (filled @ truth + _RIGHT) / (said @ truth + _RIGHT + _WRONG)
        passes = ((said * (1 - filled)) @ (1 - truth) + _RIGHT) / (said @ (1 - truth) + _RIGHT + _WRONG)
        ones = np.log(rate) + (said * _log_chance(filled, hits[:, None])).sum(axis=0)
        zeros = np.log(1 - rate) + (said * _log_chance(1 - filled, passes[:, None])).sum(axis=0)
        newer = 1 / (1 + np.exp(zeros - ones))
        if np.abs(newer - truth).max(initial=0.0) < 1e-9:
            break
        truth = newer
    return truth


def _log_chance(is_right: Floats, rate: Floats) -> Floats:
    return np.where(is_right > 0, np.log(rate), np.log(1 - rate))
