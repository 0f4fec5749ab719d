"""Usage: the unknown stays unknown."""

import numpy as np
import pytest

from medthink.metrics.answers import CallUsage, quantile, summarise_usage, total


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert total([1.0, None, 2.0]) == total([2.0, None, 1.0])
    assert (total([1.0, None]).value, total([1.0, None]).known, total([1.0, None]).unknown) == (None, 1.0, 1)
    assert total([]).value == 0


def test_summary() -> None:
    calls = [
        CallUsage(100, 20, 5, 0.01, 2.0),
        CallUsage(300, 40, None, 0.02, 4.0, attempts=3),
        CallUsage(latency_s=1.0),
    ]
    summary = summarise_usage(calls)
    assert (summary.calls, summary.attempts) == (3, 5)
    assert (summary.cost_usd.value, summary.cost_usd.known, summary.cost_usd.unknown) == (None, 0.03, 1)
    assert summary.latency_s.value == pytest.approx(7 / 3)
    assert summary.latency_p50_s == 2.0
    assert summary.output_tokens_per_s == pytest.approx(10.0)


def test_unpriced_is_not_free() -> None:
    assert summarise_usage([CallUsage(10, 10)]).cost_usd.value is None
    assert summarise_usage([CallUsage(10, 10, cost_usd=0.0)]).cost_usd.value == 0


def test_nothing_timed() -> None:
    summary = summarise_usage([CallUsage(10, 10)])
    assert (summary.latency_s.value, summary.latency_p95_s, summary.output_tokens_per_s) == (None, None, None)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.95, 1.0])
def test_quantile_is_numpys(share: float) -> None:
    values = sorted([3.0, 1.5, 9.0, 4.25, 4.25, 7.0])
    assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)))
