"""What every function of this room returns: a value with its interval, or a reason why there is none."""

import msgspec


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
