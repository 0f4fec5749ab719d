"""The rate behind an imperfect judge: what it reports, corrected for how often it is known to be wrong."""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import ClusterReplicates
from medthink.stats.clusters import Floats, as_hits, cluster_totals
from medthink.stats.estimate import Estimate, Measured, Undefined
from medthink.stats.intervals import normal_quantile

NO_INFORMATION = "the validated rows lack one of the classes, or the judge is no better than chance on them"


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge did on rows whose truth is known: hits among the truly positive and truly negative."""

    true_positives: int
    positives: int
    true_negatives: int
    negatives: int


def corrected_rate(positives: int, n: int, *, validation: Validation, level: float = 0.95) -> Measured:
    """The true rate behind `positives` of `n` judged rows, given a validation on other rows.

    (p + specificity − 1)/(sensitivity + specificity − 1), clipped to [0, 1] (Rogan and Gladen 1978), with
    the interval of Lang and Reiczigel (2014), which carries the uncertainty of all three rates. Assumes
    independent rows, and a judge that errs on the judged rows as on the validated ones. For clustered rows
    use `corrected_clustered_rate`. Rival: prediction-powered inference, which corrects the mean error
    instead and needs validated rows drawn at random from the judged ones.
    """
    v, z = validation, normal_quantile(level)
    if not (0 <= positives <= n and 0 <= v.true_positives <= v.positives and 0 <= v.true_negatives <= v.negatives):
        raise ValueError("a count exceeds its total")
    if not (n and v.positives and v.negatives):
        return Undefined(reason=NO_INFORMATION if n else "no rows", n=n)
    youden = v.true_positives / v.positives + v.true_negatives / v.negatives - 1
    if youden <= 0:
        return Undefined(reason=NO_INFORMATION, n=n)
    value = (positives / n + v.true_negatives / v.negatives - 1) / youden
    low, high = _lang_reiczigel(positives, n, v, z)
    clipped = "" if 0 <= value <= 1 else f", estimate {value:.3f} clipped"
    return Estimate(
        value=min(1.0, max(0.0, value)),
        low=min(1.0, max(0.0, low)),
        high=min(1.0, max(0.0, high)),
        level=level,
        n=n,
        clusters=n,
        method=f"Rogan–Gladen with Lang–Reiczigel interval{clipped}",
    )


def _lang_reiczigel(positives: int, n: int, v: Validation, z: float) -> tuple[float, float]:
    trials, tested, healthy = n + z * z, v.positives + 2, v.negatives + 2
    rate = (positives + z * z / 2) / trials
    sensitivity, specificity = (v.true_positives + 1) / tested, (v.true_negatives + 1) / healthy
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return 0.0, 1.0
    centre = (rate + specificity - 1) / youden
    noise_positive = sensitivity * (1 - sensitivity) / tested
    noise_negative = specificity * (1 - specificity) / healthy
    shift = 2 * z * z * (centre * noise_positive - (1 - centre) * noise_negative)
    variance = rate * (1 - rate) / trials + centre**2 * noise_positive + (1 - centre) ** 2 * noise_negative
    half = z * variance**0.5 / youden
    return centre + shift - half, centre + shift + half


def corrected_clustered_rate(
    judged: npt.ArrayLike,
    truth: Sequence[bool | None],
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Measured:
    """The Rogan–Gladen rate of judged 0/1 rows, some of which have a known truth (None: not validated).

    Clusters are drawn whole, judged and validated rows together, so that dependence within a case and
    the overlap of both sets are in the interval. Clipped to [0, 1].
    """
    reported = as_hits(judged, name="judged")
    known = np.array([value is not None for value in truth], dtype=bool)
    actual = as_hits([value or 0 for value in truth], name="truth")
    if known.shape != reported.shape:
        raise ValueError(f"{len(reported)} judged rows but {len(known)} truth values; they must match row by row")
    positive, negative = known & (actual == 1), known & (actual == 0)
    columns = [reported, np.ones(len(reported)), positive * reported, positive, negative * (1 - reported), negative]
    totals = cluster_totals(np.column_stack(columns), clusters)
    drawn = ClusterReplicates(totals.sums, len(reported), rng=rng, level=level, resamples=resamples)
    return drawn.measure(_rogan_gladen, NO_INFORMATION)


def _rogan_gladen(sums: Floats) -> Floats:
    hits, n, true_positives, positives, true_negatives, negatives = np.moveaxis(sums, -1, 0)
    sensitivity = true_positives / np.maximum(positives, 1)
    specificity = true_negatives / np.maximum(negatives, 1)
    youden = sensitivity + specificity - 1
    defined = (positives > 0) & (negatives > 0) & (youden > 0)
    rate = (hits / np.maximum(n, 1) + specificity - 1) / np.where(defined, youden, 1.0)
    return np.where(defined, np.clip(rate, 0.0, 1.0), np.nan)
