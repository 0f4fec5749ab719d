"""Every metric as data: its name, version, direction, range and function.

A metric registered here is enrolled in the shared invariance suite and must have a card in `docs/metrics/`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from medthink.metrics import answers, discussion, spelling, usage
from medthink.metrics.bleu import bleu2
from medthink.metrics.findings import VERSION as FINDINGS_VERSION
from medthink.metrics.findings.agreement import FINDING_VALUES, FindingAgreement, compare_findings
from medthink.metrics.radcliq.composite import Components, radcliq_v0, radcliq_v1
from medthink.metrics.rouge import KINDS, Rouge, RougeKind

Direction = Literal["higher", "lower", "neither"]
# What the function takes: texts in pairs, RadCliQ components of pairs, outcomes, outcomes by case, or calls.
Kind = Literal["pairs", "components", "answers", "repeats", "usage"]
PairFunction = Callable[[Sequence[str], Sequence[str]], Sequence[float | None]]

ROUGE_VERSION = "1"


class Metric(msgspec.Struct, frozen=True):
    """One metric; those of `pairs` and `components` give a value a pair, the others one value for all they get."""

    name: str
    version: str
    kind: Kind
    direction: Direction
    low: float
    high: float
    card: str
    function: Callable[..., Any]
    # Whether any text with at least two words scores the best value against itself.
    best_if_identical: bool = True


def _rouge_f1(kind: RougeKind, *, normalise: bool) -> PairFunction:
    def score(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
        texts = [references, candidates]
        if normalise:
            texts = [[spelling.normalise_spelling(text) for text in side] for side in texts]
        return [overlaps[kind].f1 for overlaps in Rouge((kind,)).score_all(*texts)]

    return score


def _bleu(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    return [bleu2(ref, cand) for ref, cand in zip(references, candidates, strict=True)]


def _rouges() -> Iterable[Metric]:
    for kind in KINDS:
        for normalise in (False, True):
            yield Metric(
                name=f"{kind}_norm" if normalise else kind,
                version=f"{ROUGE_VERSION}+spelling-{spelling.VERSION}" if normalise else ROUGE_VERSION,
                kind="pairs",
                direction="higher",
                low=0.0,
                high=1.0,
                card="rouge_norm" if normalise else "rouge",
                function=_rouge_f1(kind, normalise=normalise),
            )


def _texts() -> Iterable[Metric]:
    yield Metric("bleu2", "1", "pairs", "higher", 0.0, 1.0, "bleu2", _bleu)
    yield Metric("section_coverage", "1", "pairs", "higher", 0.0, 1.0, "discussion", discussion.section_coverage)


def _findings() -> Iterable[Metric]:
    for name, read in FINDING_VALUES.items():
        counts = name == "finding_conflicts"
        yield Metric(
            name=name,
            version=FINDINGS_VERSION,
            kind="pairs",
            direction="lower" if counts else "higher",
            low=0.0,
            high=math.inf if counts else 1.0,
            card="findings",
            function=_agreement_value(read),
        )


def _agreement_value(read: Callable[[FindingAgreement], float | None]) -> PairFunction:
    def score(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
        pairs = zip(references, candidates, strict=True)
        return [read(compare_findings(reference, candidate)) for reference, candidate in pairs]

    return score


def _radcliqs() -> Iterable[Metric]:
    for name, function in (("radcliq_v0", radcliq_v0), ("radcliq_v1", radcliq_v1)):
        yield Metric(name, "1", "components", "lower", -math.inf, math.inf, "radcliq", _composite_values(function))


def _composite_values(function: Callable[[Components], float]) -> Callable[[Sequence[Components]], list[float]]:
    return lambda components: [function(entry) for entry in components]


def _answers() -> Iterable[Metric]:
    def headline(outcomes: Sequence[answers.GradedAnswer]) -> float | None:
        return answers.count_answers(outcomes).accuracy

    def answered(outcomes: Sequence[answers.GradedAnswer]) -> float | None:
        return answers.count_answers(outcomes).accuracy_answered

    for name, function in (("accuracy", headline), ("accuracy_answered", answered)):
        yield Metric(name, "1", "answers", "higher", 0.0, 1.0, "answers", function)


def _repeats() -> Iterable[Metric]:
    for name, field in (
        ("accuracy_mean", "mean"),
        ("answer_consistency", "consistency"),
        ("accuracy_majority", "majority_accuracy"),
    ):
        yield Metric(name, "1", "repeats", "higher", 0.0, 1.0, "answers", _repeat_field(field))


def _repeat_field(field: str) -> Callable[[Mapping[str, Sequence[answers.GradedAnswer]]], float | None]:
    def summarise(cases: Mapping[str, Sequence[answers.GradedAnswer]]) -> float | None:
        value: float | None = getattr(answers.summarise_repeats(cases), field)
        return value

    return summarise


def _usages() -> Iterable[Metric]:
    for name, direction, read in _USAGE:
        yield Metric(name, "1", "usage", direction, 0.0, math.inf, "usage", _usage_value(read))


def _usage_value(
    read: Callable[[usage.UsageSummary], float | None],
) -> Callable[[Sequence[usage.CallUsage]], float | None]:
    return lambda calls: read(usage.summarise_usage(calls))


_USAGE: tuple[tuple[str, Direction, Callable[[usage.UsageSummary], float | None]], ...] = (
    ("calls", "neither", lambda summary: summary.calls),
    ("attempts", "lower", lambda summary: summary.attempts),
    ("input_tokens", "lower", lambda summary: summary.input_tokens.value),
    ("output_tokens", "lower", lambda summary: summary.output_tokens.value),
    ("reasoning_tokens", "lower", lambda summary: summary.reasoning_tokens.value),
    ("cost_usd", "lower", lambda summary: summary.cost_usd.value),
    ("latency_mean_s", "lower", lambda summary: summary.latency_s.value),
    ("latency_p50_s", "lower", lambda summary: summary.latency_p50_s),
    ("latency_p95_s", "lower", lambda summary: summary.latency_p95_s),
    ("output_tokens_per_s", "higher", lambda summary: summary.output_tokens_per_s),
)

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for source in (_rouges, _texts, _findings, _radcliqs, _answers, _repeats, _usages)
    for metric in source()
}
