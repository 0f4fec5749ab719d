"""Many tests at once."""

import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Floats, as_column


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm's step-down adjusted p-values, in the order given.

    An adjusted value below α may be called significant, and the chance of any false call in the family stays below α
    however the tests depend on each other (Holm 1979). Range [p, 1]. Rivals: Bonferroni (never more powerful),
    Benjamini–Hochberg (bounds the share of false calls instead).
    """
    values = as_column(p_values, name="p_values")
    if ((values < 0) | (values > 1)).any():
        raise ValueError("p-values must lie in [0, 1]")
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted
