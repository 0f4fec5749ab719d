"""Many tests at once."""

import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Floats, as_column, cluster_codes


def holm(p_values: npt.ArrayLike, *, families: npt.ArrayLike | None = None) -> Floats:
    """Holm's step-down adjusted p-values, in the order given; with labels, within each family separately.

    An adjusted value below α may be called significant, and the chance of any false call in the family stays below α
    however the tests depend on each other (Holm 1979). Range [p, 1]. Rivals: Bonferroni (never more powerful),
    Benjamini–Hochberg (bounds the share of false calls instead).
    """
    values = as_column(p_values, name="p_values")
    if ((values < 0) | (values > 1)).any():
        raise ValueError("p-values must lie in [0, 1]")
    family = np.zeros(len(values), dtype=np.int64) if families is None else cluster_codes(families, len(values))
    adjusted = np.empty_like(values)
    for code in np.unique(family):
        adjusted[family == code] = _holm_family(values[family == code])
    return adjusted


def _holm_family(values: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted
