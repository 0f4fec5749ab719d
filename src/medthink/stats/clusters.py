"""Rows grouped into clusters, independent of the order of the rows."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ClusterTotals(NamedTuple):
    """Per cluster: the sums of each column (clusters × columns) and the number of rows."""

    sums: Floats
    sizes: Floats


def as_floats(values: npt.ArrayLike, *, name: str = "values") -> Floats:
    """The values as finite floats; a NaN or infinity is a ValueError, never a number to compute with."""
    floats = np.asarray(values, dtype=np.float64)
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} holds NaN or infinity; leave such rows out first, and count them")
    return floats


def as_column(values: npt.ArrayLike, *, name: str = "values") -> Floats:
    """The values as one column of finite floats."""
    floats = as_floats(values, name=name)
    if floats.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {floats.ndim}")
    return floats


def as_hits(values: npt.ArrayLike, *, name: str = "hits") -> Floats:
    """The values as one column of zeros and ones."""
    floats = as_column(values, name=name)
    if not np.isin(floats, (0.0, 1.0)).all():
        raise ValueError(f"{name} must be 0 or 1 (or bool)")
    return floats


def as_pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Two columns of the same length, row by row about the same thing."""
    first, second = as_column(a, name="a"), as_column(b, name="b")
    if len(first) != len(second):
        raise ValueError(f"a has {len(first)} rows and b has {len(second)}; they must pair up")
    return first, second


def cluster_codes(clusters: npt.ArrayLike | None, rows: int) -> Ints:
    """A number 0…G−1 for each row's cluster, in sorted order of the labels; without labels, one each."""
    if clusters is None:
        return np.arange(rows)
    labels = np.asarray(clusters)
    if labels.shape != (rows,):
        raise ValueError(f"clusters must label each of the {rows} rows, got shape {labels.shape}")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def canonical_order(columns: Floats, clusters: npt.ArrayLike | None) -> tuple[Ints, Ints]:
    """A canonical row order, the same for any shuffle of the rows, and the cluster codes in that order.

    Rows are sorted by cluster and then by content. Without labels, content alone decides.
    """
    keys = [columns[:, j] for j in range(columns.shape[1])]
    if clusters is None:
        return np.lexsort(keys), np.arange(len(columns))
    codes = cluster_codes(clusters, len(columns))
    order = np.lexsort([*keys, codes])
    return order, codes[order]


def cluster_totals(columns: Floats, clusters: npt.ArrayLike | None) -> ClusterTotals:
    """Sums of the columns (rows × columns) and row counts per cluster, clusters in canonical order."""
    order, codes = canonical_order(columns, clusters)
    if not len(codes):
        return ClusterTotals(np.zeros((0, columns.shape[1])), np.zeros(0))
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    sums = np.add.reduceat(columns[order], starts, axis=0)
    return ClusterTotals(sums, np.diff(np.append(starts, len(codes))).astype(np.float64))
