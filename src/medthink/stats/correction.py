"""The rate behind an imperfect judge: what it reports, corrected for how often it is known to be wrong."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import ClusterReplicates
from medthink.stats.clusters import Floats, as_hits, cluster_totals
from medthink.stats.estimate import Measured

NO_INFORMATION = "the validated rows lack one of the classes, or the judge is no better than chance on them"


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
