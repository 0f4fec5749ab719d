"""Agreement of raters: several coefficients together, because each is misleading by itself.

Every interval draws whole clusters (cases): judgements of steps of one case are not independent, and an
interval that pretends they are is too narrow.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.core.numbers import as_percent
from medthink.stats.bootstrap import ClusterReplicates
from medthink.stats.estimate import Floats, Ints, Measured, cluster_totals
from medthink.stats.intervals import rate_interval

Weighting = Literal["identity", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal"]


def agreement_weights(k: int, weighting: Weighting) -> Floats:
    """How much a pair of categories counts as agreement (K × K): 1 on the diagonal, 0 at the far ends."""
    if weighting == "identity" or k < 2:
        return np.eye(k)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1)
    return 1 - (distance if weighting == "linear" else distance**2)


def value_or_none(coefficient: Floats) -> float | None:
    """One coefficient as a plain number, None where it is undefined."""
    return None if np.isnan(coefficient) else float(coefficient)


def _where(defined: npt.NDArray[np.bool_], top: Any, bottom: Any) -> Floats:
    ratio: Floats = np.divide(top, bottom, out=np.full(np.shape(bottom), np.nan), where=defined)
    return ratio


def _both_vary(tables: Floats) -> npt.NDArray[np.bool_]:
    rows, columns = (tables.sum(axis=axis) for axis in (-1, -2))
    vary: npt.NDArray[np.bool_] = ((rows > 0).sum(axis=-1) > 1) & ((columns > 0).sum(axis=-1) > 1)
    return vary


def percents(tables: Floats) -> Floats:
    """Share of rows on the diagonal."""
    n = tables.sum(axis=(-2, -1))
    return _where(n > 0, np.trace(tables, axis1=-2, axis2=-1), n)


def kappas(tables: Floats, weighting: Weighting) -> Floats:
    """Cohen's κ, weighted or not; undefined where either rater used one category only."""
    disagreement = 1 - agreement_weights(tables.shape[-1], weighting)
    n = tables.sum(axis=(-2, -1))
    expected = np.einsum("...i,...j,ij->...", tables.sum(axis=-1), tables.sum(axis=-2), disagreement)
    observed = (tables * disagreement).sum(axis=(-2, -1)) * n
    return 1 - _where(_both_vary(tables), observed, expected)


def correlations(tables: Floats) -> Floats:
    """Matthews' correlation (Gorodkin's R_K for K > 2); undefined where either rater is constant."""
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    n, hits = tables.sum(axis=(-2, -1)), np.trace(tables, axis1=-2, axis2=-1)
    top = hits * n - (rows * columns).sum(axis=-1)
    spread = (n**2 - (rows**2).sum(axis=-1)) * (n**2 - (columns**2).sum(axis=-1))
    defined = _both_vary(tables)
    return _where(defined, top, np.sqrt(np.where(defined, spread, 1.0)))


def gwets(observed: Floats, shares: Floats, weighting: Weighting) -> Floats:
    """Gwet's AC1 (identity) or AC2 from weighted agreement and mean category shares (…, K)."""
    k = shares.shape[-1]
    if k < 2:
        return np.full(np.shape(observed), np.nan)
    chance = agreement_weights(k, weighting).sum() / (k * (k - 1)) * (shares * (1 - shares)).sum(axis=-1)
    return _where(~np.isnan(observed), observed - chance, 1 - chance)


def gwets_of_tables(tables: Floats, weighting: Weighting) -> Floats:
    """Gwet's AC1 or AC2 of two raters."""
    n = tables.sum(axis=(-2, -1))
    weights = agreement_weights(tables.shape[-1], weighting)
    observed = _where(n > 0, (tables * weights).sum(axis=(-2, -1)), n)
    used = np.where(n > 0, n, 1)[..., None]
    return gwets(observed, (tables.sum(axis=-1) + tables.sum(axis=-2)) / (2 * used), weighting)


def alphas(coincidences: Floats, scale: Scale) -> Floats:
    """Krippendorff's α from coincidence tables; undefined where all values fall in one category."""
    marginals = coincidences.sum(axis=-1)
    n = marginals.sum(axis=-1)
    distance = _distances(marginals, scale)
    observed = (coincidences * distance).sum(axis=(-2, -1)) * (n - 1)
    expected = (marginals[..., :, None] * marginals[..., None, :] * distance).sum(axis=(-2, -1))
    return 1 - _where((marginals > 0).sum(axis=-1) > 1, observed, expected)


def _distances(marginals: Floats, scale: Scale) -> Floats:
    k = marginals.shape[-1]
    if scale == "nominal":
        return np.broadcast_to(1 - np.eye(k), (*marginals.shape, k))
    # Krippendorff's ordinal metric: the values ranked between the two, half of each end included.
    middle = np.cumsum(marginals, axis=-1) - marginals / 2
    distances: Floats = (middle[..., :, None] - middle[..., None, :]) ** 2
    return distances


Label = str | int | bool
LabelColumn = Sequence[Label] | npt.NDArray[np.generic]


def code_labels(labels: Sequence[Label | None], categories: Sequence[Label]) -> Ints:
    """Each label's index among the categories, −1 for a missing one (None); any other label is a ValueError."""
    places: dict[Label | None, int] = {label: k for k, label in enumerate(categories)}
    if len(places) != len(categories):
        raise ValueError("categories must differ")
    try:
        return np.array([-1 if label is None else places[label] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise ValueError(f"label {error.args[0]!r} is not one of the categories {list(categories)}") from None


def known_categories(labels: set[Label], categories: Sequence[Label] | None) -> tuple[Label, ...]:
    """The categories given, or else those that occur, sorted."""
    if categories is not None:
        return tuple(categories)
    try:
        return tuple(sorted(labels))
    except TypeError:
        raise ValueError("labels of mixed types have no order; give the categories") from None


def _plain(labels: LabelColumn) -> list[Label]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def paired_codes(
    a: LabelColumn, b: LabelColumn, categories: Sequence[Label] | None
) -> tuple[Ints, Ints, tuple[Label, ...]]:
    """Both raters' labels as indices among the categories, and the categories."""
    first, second = _plain(a), _plain(b)
    if len(first) != len(second):
        raise ValueError(f"a has {len(first)} rows and b has {len(second)}; they must pair up")
    if None in first or None in second:
        raise ValueError("a row has no label; leave it out of both, or use panel_agreement")
    known = known_categories({*first, *second}, categories)
    codes = code_labels([*first, *second], known)
    return codes[: len(first)], codes[len(first) :], known


# κ falls with prevalence however good the raters; beyond this share, and this far below AC1, it misleads.
SKEWED_SHARE = 0.7
KAPPA_GAP = 0.1

CONSTANT = "a rater used only one category"
ALL_ALIKE = "all labels are of one category"
ONE_CATEGORY = "fewer than two categories"


class KappaCaution(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why κ is misleading here."""

    prevalence: float
    kappa: float | None
    ac1: float
    reason: str


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on the same rows; `confusion` has a's categories in rows, `prevalence` averages the two."""

    n: int
    clusters: int
    categories: tuple[Label, ...]
    confusion: tuple[tuple[int, ...], ...]
    prevalence: tuple[float, ...]
    percent: Measured
    kappa: Measured
    mcc: Measured
    ac1: Measured
    alpha: Measured
    caution: KappaCaution | None


class OrderedAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on an ordered scale, with partial credit for near misses."""

    n: int
    clusters: int
    kappa_linear: Measured
    kappa_quadratic: Measured
    ac2_linear: Measured
    ac2_quadratic: Measured
    alpha_ordinal: Measured


def confusion(a: LabelColumn, b: LabelColumn, *, categories: Sequence[Label] | None = None) -> Ints:
    """Counts (K × K) of a's category (rows) against b's (columns), in the order of `categories`."""
    first, second, known = paired_codes(a, b, categories)
    k = len(known)
    counts: Ints = np.bincount(first * k + second, minlength=k * k).reshape(k, k)
    return counts


def cohen_kappa(table: npt.ArrayLike, *, weighting: Weighting = "identity") -> float | None:
    """Cohen's κ: agreement beyond what the raters' own category shares give by chance, in [−1, 1].

    (p_o − p_e)/(1 − p_e), disagreements weighted by 1, |i − j| or (i − j)² (Cohen 1960, 1968). None if either
    rater used one category only: κ is then 0/0, or 0 whatever the agreement, and meaningless (scikit-learn
    gives NaN and 0). Rivals: Scott's π and Krippendorff's α pool the shares of both raters.
    """
    return value_or_none(kappas(np.asarray(table, dtype=np.float64), weighting))


def gwet_ac(table: npt.ArrayLike, *, weighting: Weighting = "identity") -> float | None:
    """Gwet's AC1, or AC2 with weights: agreement beyond chance that hardly falls with prevalence, in [−1, 1].

    Chance is Σπ(1 − π)/(K − 1), times the mean weight for AC2, with π the shares of both raters together
    (Gwet 2008). K is the number of categories offered, used or not. None for fewer than two.
    """
    return value_or_none(gwets_of_tables(np.asarray(table, dtype=np.float64), weighting))


def kappa_caution(table: npt.ArrayLike) -> KappaCaution | None:
    """Whether κ is misleading for this table because one category prevails; None if it does not.

    It is when the commonest category has at least 70 % of both raters' labels and κ is undefined or
    0.1 or more below AC1: high agreement with low κ, the paradox of Feinstein and Cicchetti (1990). Raters
    that are each right 90 % of the time get κ 0.64 at a prevalence of 50 %, but 0.25 at 95 %.
    """
    counts = np.asarray(table, dtype=np.float64)
    kappa, ac1 = cohen_kappa(counts), gwet_ac(counts)
    if ac1 is None or counts.sum() == 0:
        return None
    prevalence = float(_shares(counts).max())
    if prevalence < SKEWED_SHARE or (kappa is not None and ac1 - kappa < KAPPA_GAP):
        return None
    shown = "undefined" if kappa is None else f"{kappa:.2f}"
    reason = f"one category holds {as_percent(prevalence, 0)} of the labels, so κ is {shown} where AC1 is {ac1:.2f}"
    return KappaCaution(prevalence=prevalence, kappa=kappa, ac1=ac1, reason=reason)


def _shares(table: Floats) -> Floats:
    shares: Floats = (table.sum(axis=0) + table.sum(axis=1)) / (2 * table.sum())
    return shares


def _cell_indicators(first: Ints, second: Ints, k: int) -> Floats:
    indicators: Floats = np.eye(k * k)[first * k + second]
    return indicators


def rater_agreement(
    a: LabelColumn,
    b: LabelColumn,
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    categories: Sequence[Label] | None = None,
    level: float = 0.95,
    resamples: int = 2_000,
) -> Agreement:
    """Percent agreement, κ, MCC, AC1 and α of two raters, all from the same resampled clusters.

    Categories default to those that occur, sorted; give them where some may not occur (AC1 depends on
    their number). Percent agreement uses `rate_interval`, which is valid at 100 %.
    """
    first, second, known = paired_codes(a, b, categories)
    k, n = len(known), len(first)
    totals = cluster_totals(_cell_indicators(first, second, k), clusters)
    drawn = ClusterReplicates(totals.sums, n, rng=rng, level=level, resamples=resamples)
    table = drawn.total.reshape(k, k)

    def tables(sums: Floats) -> Floats:
        return sums.reshape(*sums.shape[:-1], k, k)

    return Agreement(
        n=n,
        clusters=drawn.groups,
        categories=known,
        confusion=tuple(tuple(int(cell) for cell in row) for row in table),
        prevalence=tuple(_shares(table).tolist()) if n else (),
        percent=rate_interval(first == second, clusters=clusters, level=level),
        kappa=drawn.measure(lambda sums: kappas(tables(sums), "identity"), CONSTANT),
        mcc=drawn.measure(lambda sums: correlations(tables(sums)), CONSTANT),
        ac1=drawn.measure(lambda sums: gwets_of_tables(tables(sums), "identity"), ONE_CATEGORY),
        alpha=drawn.measure(lambda sums: alphas(_symmetric(tables(sums)), "nominal"), ALL_ALIKE),
        caution=kappa_caution(table),
    )


def _symmetric(tables: Floats) -> Floats:
    return tables + np.swapaxes(tables, -1, -2)


def ordered_agreement(
    a: LabelColumn,
    b: LabelColumn,
    *,
    categories: Sequence[Label],
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 2_000,
) -> OrderedAgreement:
    """Weighted κ, AC2 and ordinal α of two raters on categories given from lowest to highest.

    Weights depend on the number of categories between two, so all must be given, used or not.
    """
    first, second, known = paired_codes(a, b, categories)
    k = len(known)
    totals = cluster_totals(_cell_indicators(first, second, k), clusters)
    drawn = ClusterReplicates(totals.sums, len(first), rng=rng, level=level, resamples=resamples)

    def tables(sums: Floats) -> Floats:
        return sums.reshape(*sums.shape[:-1], k, k)

    return OrderedAgreement(
        n=len(first),
        clusters=drawn.groups,
        kappa_linear=drawn.measure(lambda sums: kappas(tables(sums), "linear"), CONSTANT),
        kappa_quadratic=drawn.measure(lambda sums: kappas(tables(sums), "quadratic"), CONSTANT),
        ac2_linear=drawn.measure(lambda sums: gwets_of_tables(tables(sums), "linear"), ONE_CATEGORY),
        ac2_quadratic=drawn.measure(lambda sums: gwets_of_tables(tables(sums), "quadratic"), ONE_CATEGORY),
        alpha_ordinal=drawn.measure(lambda sums: alphas(_symmetric(tables(sums)), "ordinal"), ALL_ALIKE),
    )
