"""What holds for every registered metric: a metric is enrolled by being registered."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from medthink.metrics.answers import STATES, CallUsage, GradedAnswer, mean_of_known
from medthink.metrics.radcliq import Components
from medthink.metrics.registry import METRICS, Metric

TEXTS = [
    "Background\nThere is a 12 mm nodule in the right upper lobe. No pleural effusion.\nOutcome\nIt has grown.",
    "Large left pleural effusion with collapse of the left lower lobe.",
    "T2-weighted images show oedema of the left frontal lobe, without haemorrhage.",
    "Normal appearance of the liver and spleen. The gallbladder contains several calculi.",
    "Fracture of the distal radius with dorsal angulation; no dislocation is seen.",
    "No pneumothorax, effusion or consolidation. Heart size is normal.",
]
HOSTILE = [
    "",
    " ",
    "\n\n",
    "肺炎 と 胸水",
    "\ud800 mass",
    "a" * 3000,
    "no " * 300,
    "1.5 x 2,5 x 1e9 cm",
    "ﬁbrosis …",
    "\x00<b>",
]


def outcomes() -> list[GradedAnswer]:
    return [GradedAnswer(STATES[i % 5] if i % 3 == 0 else "ok", "ABCDE"[i * 7 % 5], "ABCDE"[i % 5]) for i in range(40)]


def calls() -> list[CallUsage]:
    return [CallUsage(100 + i, 10 * i, i, 0.1 * i, 0.3 + 0.1 * i, 1 + i % 2) for i in range(1, 30)]


def cases() -> dict[str, list[GradedAnswer]]:
    listed = outcomes()
    return {str(i): [o._replace(gold="A") for o in listed[i : i + 1 + i % 4]] for i in range(0, 36, 3)}


TEXTUAL = ("pairs", "discussions")


def inputs_of(metric: Metric) -> tuple[Any, ...]:
    """Ordinary input for a metric of this kind."""
    if metric.kind in TEXTUAL:
        return TEXTS, TEXTS[1:] + TEXTS[:1]
    if metric.kind == "components":
        return ([Components(0.1 * i, 0.05 * i, 0.09 * i, 0.02 * i) for i in range(8)],)
    return {"answers": (outcomes(),), "repeats": (cases(),), "usage": (calls(),)}[metric.kind]


def reversed_inputs(metric: Metric) -> tuple[Any, ...]:
    if metric.kind == "repeats":
        return (dict(reversed(cases().items())),)
    return tuple(list(reversed(part)) for part in inputs_of(metric))


def one_value(metric: Metric, inputs: tuple[Any, ...]) -> float | None:
    result = metric.function(*inputs)
    return mean_of_known(result).value if metric.kind in (*TEXTUAL, "components") else result


def in_range(metric: Metric, value: float | None) -> bool:
    return value is None or (math.isfinite(value) and metric.low <= value <= metric.high)


every = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
pairs = pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.kind in TEXTUAL], ids=lambda m: m.name)


@every
def test_the_same_input_gives_the_same_value(metric: Metric) -> None:
    assert metric.function(*inputs_of(metric)) == metric.function(*inputs_of(metric))


@every
def test_the_order_of_rows_does_not_matter(metric: Metric) -> None:
    assert one_value(metric, inputs_of(metric)) == one_value(metric, reversed_inputs(metric))


@every
def test_ordinary_input_gives_a_value_in_range(metric: Metric) -> None:
    value = one_value(metric, inputs_of(metric))
    assert value is not None
    assert in_range(metric, value)


@every
def test_nothing_in_gives_no_made_up_score(metric: Metric) -> None:
    empty: Callable[[], Any] = dict if metric.kind == "repeats" else list
    result = metric.function([], []) if metric.kind in TEXTUAL else metric.function(empty())
    # Sums over nothing are 0; everything else over nothing is unknown.
    sums = {"calls", "attempts", "input_tokens", "output_tokens", "reasoning_tokens", "cost_usd"}
    by_pair = metric.kind in (*TEXTUAL, "components")
    assert result == ([] if by_pair else 0 if metric.name in sums else None)


@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.kind == "components"], ids=lambda m: m.name)
def test_perfect_components_beat_all_others(metric: Metric) -> None:
    best, worst = metric.function([Components(1, 1, 1, 1), Components(0, 0, 0, 0)])
    assert all(best <= value <= worst for value in metric.function(*inputs_of(metric)))


@every
def test_is_described(metric: Metric) -> None:
    assert metric.name == metric.name.strip() and metric.version and metric.low <= metric.high
    assert METRICS[metric.name] is metric


@pairs
def test_one_value_a_pair(metric: Metric) -> None:
    assert len(metric.function(*inputs_of(metric))) == len(TEXTS)


@pairs
def test_a_pair_is_scored_alike_alone_and_among_others(metric: Metric) -> None:
    references, candidates = inputs_of(metric)
    alone = [metric.function([r], [c])[0] for r, c in zip(references, candidates, strict=True)]
    assert alone == list(metric.function(references, candidates))


@pairs
def test_identical_text_gets_the_best_value(metric: Metric) -> None:
    best = metric.high if metric.direction == "higher" else metric.low
    values = [value for value in metric.function(TEXTS, TEXTS) if value is not None]
    assert values
    if metric.best_if_identical:
        assert values == pytest.approx([best] * len(values))


@pairs
def test_hostile_texts_stay_in_range(metric: Metric) -> None:
    crossed = [(r, c) for r in HOSTILE + TEXTS[:2] for c in HOSTILE + TEXTS[:2]]
    values = metric.function([r for r, _ in crossed], [c for _, c in crossed])
    assert all(in_range(metric, value) for value in values)


@pairs
def test_unequal_lengths_are_refused(metric: Metric) -> None:
    with pytest.raises(ValueError):
        metric.function(["a"], [])
