"""The result type of every function of this package: a value with its interval, or the reason why there is none."""

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.core.numbers import as_decimal, as_percent, as_rate


class Estimate(msgspec.Struct, frozen=True, kw_only=True, tag="estimate", tag_field="kind"):
    """A value with its interval at `level`, from `n` rows in `clusters` independent groups."""

    value: float
    low: float
    high: float
    level: float
    n: int
    clusters: int
    method: str


class Undefined(msgspec.Struct, frozen=True, kw_only=True, tag="undefined", tag_field="kind"):
    """A quantity, or the interval around it, that cannot be computed from these rows.

    `value` is set when the quantity itself is known and only its uncertainty is not: a single cluster, or identical
    rows, show a mean but no spread.
    """

    reason: str
    n: int
    value: float | None = None


Measured = Estimate | Undefined


def reciprocal(measured: Measured) -> Measured:
    """The estimate of 1/x from the estimate of x, by inverting the ends of its interval.

    An interval keeps its coverage under a monotone change of scale. 1/x is monotone only on one side of
    zero, so an interval that includes zero gives Undefined.
    """
    if isinstance(measured, Undefined):
        inverse = 1 / measured.value if measured.value else None
        return Undefined(reason=measured.reason, n=measured.n, value=inverse)
    if measured.low <= 0 <= measured.high:
        return Undefined(reason="the interval includes zero, where 1/x is undefined", n=measured.n)
    return msgspec.structs.replace(
        measured,
        value=1 / measured.value,
        low=1 / measured.high,
        high=1 / measured.low,
        method=f"reciprocal of: {measured.method}",
    )


def check_level(level: float) -> None:
    """Raise ValueError unless `level` is a confidence level."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")


def value_of(measured: Measured | None) -> float | None:
    """The value alone, if there is one."""
    return measured.value if measured is not None else None


def ends_of(measured: Measured | None) -> tuple[float, float] | None:
    """The ends of the interval, if there is one."""
    return (measured.low, measured.high) if isinstance(measured, Estimate) else None


def rank_range(rank: int, worst: int) -> str:
    """`2–5`, or `1` for a rank that is certain."""
    return str(rank) if rank == worst else f"{rank}–{worst}"


def rate_cell(measured: Measured) -> str:
    """`57.2 % (53.6–60.8)`; the reason for a missing interval is omitted, as it would make a column too wide."""
    if isinstance(measured, Estimate):
        return as_rate(measured.value, measured.low, measured.high)
    return "–" if measured.value is None else f"{as_percent(measured.value)} (no interval)"


def mean_cell(measured: Measured, digits: int) -> str:
    """`1.17 (1.09–1.25)` with so many digits."""
    if isinstance(measured, Estimate):
        value, low, high = (as_decimal(one, digits) for one in (measured.value, measured.low, measured.high))
        return f"{value} ({low}–{high})"
    return "–" if measured.value is None else f"{as_decimal(measured.value, digits)} (no interval)"


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


_ROUNDING = 1e-12
"""Differences of this share of the numbers they are computed from are rounding."""


def is_flat(values: Floats, *, scale: float = 1.0) -> bool:
    """Whether all values are the same except for rounding: they show no spread. Values of no rows are flat.

    `scale` is the size of the numbers that the values are computed from, such as rows that cancel in a sum.
    """
    return not len(values) or bool(np.ptp(values) <= _ROUNDING * max(scale, float(np.abs(values).max())))


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
