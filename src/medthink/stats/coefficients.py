"""Agreement coefficients for whole stacks of tables at once, as the bootstrap needs them.

Tables have shape (…, K, K): rater a's category in rows, rater b's in columns. NaN marks a table for which a
coefficient is undefined; it stays inside this room, where `agreement` turns it into None or Undefined.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Floats

Weighting = Literal["identity", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal"]


def agreement_weights(k: int, weighting: Weighting) -> Floats:
    """How much a pair of categories counts as agreement (K × K): 1 on the diagonal, 0 at the far ends."""
    if weighting == "identity" or k < 2:
        return np.eye(k)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1)
    return 1 - (distance if weighting == "linear" else distance**2)


def as_value(coefficient: Floats) -> float | None:
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
