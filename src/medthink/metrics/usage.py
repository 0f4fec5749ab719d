"""What answers cost: tokens, money, time and calls, as metrics.

What a provider did not report is unknown, and a sum with an unknown in it is unknown: a cost never becomes 0 because
the price is unknown. The sum over the known parts is kept next to it, with how many it covers.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from medthink.metrics.aggregate import Mean, mean_of


class CallUsage(msgspec.Struct, frozen=True):
    """What one call used; unknown values are None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    attempts: int = 1


class Total(msgspec.Struct, frozen=True):
    """A sum: `value` only when every part is known, `known` over the parts that are."""

    value: float | None
    known: float
    unknown: int


class UsageSummary(msgspec.Struct, frozen=True):
    """The usage of many calls.

    `unseen_replies` were requested and never arrived: they may have been billed, so the cost is a lower bound.
    """

    calls: int
    attempts: int
    input_tokens: Total
    output_tokens: Total
    reasoning_tokens: Total
    cost_usd: Total
    latency_s: Mean
    latency_p50_s: float | None
    latency_p95_s: float | None
    output_tokens_per_s: float | None
    unseen_replies: int = 0


def summarise_usage(calls: Iterable[CallUsage]) -> UsageSummary:
    """Sums, means, latency quantiles and throughput over calls."""
    listed = list(calls)
    latencies = sorted(call.latency_s for call in listed if call.latency_s is not None)
    return UsageSummary(
        calls=len(listed),
        attempts=sum(call.attempts for call in listed),
        input_tokens=total(call.input_tokens for call in listed),
        output_tokens=total(call.output_tokens for call in listed),
        reasoning_tokens=total(call.reasoning_tokens for call in listed),
        cost_usd=total(call.cost_usd for call in listed),
        latency_s=mean_of(call.latency_s for call in listed),
        latency_p50_s=quantile(latencies, 0.5),
        latency_p95_s=quantile(latencies, 0.95),
        output_tokens_per_s=tokens_per_second(listed),
    )


def total(values: Iterable[float | None]) -> Total:
    """The sum, unknown if any part is; no parts sum to 0."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    unknown = len(listed) - len(known)
    sum_known = math.fsum(known)
    return Total(None if unknown else sum_known, sum_known, unknown)


def tokens_per_second(calls: Sequence[CallUsage]) -> float | None:
    """Output tokens over time, of the calls where both are known."""
    timed = [(c.output_tokens, c.latency_s) for c in calls if c.output_tokens is not None and c.latency_s is not None]
    seconds = math.fsum(latency for _, latency in timed)
    return sum(tokens for tokens, _ in timed) / seconds if seconds > 0 else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The quantile of ascending values, interpolated between neighbours."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
