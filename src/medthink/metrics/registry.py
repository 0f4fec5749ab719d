"""Every metric as data: its name, version, direction, range and function.

Registering a text metric (`pairs`) is all that is needed: the scorer, the tables, the exports and the figures walk this
registry, the shared invariance suite enrols it, and it must have a card in `docs/metrics/`. The metrics of answers,
repeats and usage describe the numbers found under these names in `scores.json`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Literal, get_args

import msgspec

from medthink.cases.sections import split_discussion
from medthink.core.errors import UsageError
from medthink.core.plugins import load_plugin, plugin_names
from medthink.metrics import answers, words
from medthink.metrics import answers as usage
from medthink.metrics.findings import VERSION as FINDINGS_VERSION
from medthink.metrics.findings.agreement import FINDING_VALUES, compare_findings
from medthink.metrics.radcliq.composite import Components, radcliq_v0, radcliq_v1
from medthink.metrics.rouge import KINDS, Overlaps, Rouge, bleu2


def section_coverage(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    """The share of each reference's sections that its candidate has; None where the reference has none."""
    return [_coverage(ref, cand) for ref, cand in zip(references, candidates, strict=True)]


def _coverage(reference: str, candidate: str) -> float | None:
    due = split_discussion(reference).sections.keys()
    return len(due & split_discussion(candidate).sections.keys()) / len(due) if due else None


Direction = Literal["higher", "lower", "neither"]
# What the function takes: texts in pairs, whole discussions with their headings in pairs (a missing one is
# empty), RadCliQ components of pairs, answers, answers by case, or calls.
Kind = Literal["pairs", "discussions", "components", "answers", "repeats", "usage"]
# Where a text metric appears besides `scores.json` and the table of a single run.
Appearance = Literal["tables", "exports", "figures"]
EVERYWHERE: tuple[Appearance, ...] = get_args(Appearance)
Columns = dict[str, list[float | None]]
"""One value per pair, by metric; None where the metric has none."""
PairFunction = Callable[[Sequence[str], Sequence[str]], Sequence[float | None]]
FamilyFunction = Callable[[Sequence[str], Sequence[str]], Columns]

ROUGE_VERSION = "1"


class Metric(msgspec.Struct, frozen=True):
    """One metric; those of texts and components give one value per pair, the others one value in total.

    `label` is its display name, `note` is a caveat. Metrics that share most of their work have the
    same `family`, which computes them together. `best_if_identical` says whether any text with at least two words
    scores the best value against itself.
    """

    name: str
    version: str
    kind: Kind
    direction: Direction
    low: float
    high: float
    card: str
    function: Callable[..., Any]
    label: str = ""
    note: str = ""
    shown: tuple[Appearance, ...] = EVERYWHERE
    family: FamilyFunction | None = None
    best_if_identical: bool = True

    @property
    def title(self) -> str:
        """The metric's name at the head of a column."""
        label = self.label or self.name
        return label[0].upper() + label[1:]

    def explain(self) -> str:
        """One sentence that explains its values."""
        parts = [self.note] if self.note else []
        if math.isfinite(self.low) and math.isfinite(self.high):
            parts.append(f"{self.low:g} to {self.high:g}")
        if self.direction != "neither":
            parts.append(f"{self.direction} is better")
        return f"{self.title}: {'; '.join(parts)}."


def all_metrics() -> dict[str, Metric]:
    """Every metric: those here, those registered, and those that other packages add."""
    _add_plugins()
    return METRICS


@cache
def _add_plugins() -> None:
    # Not when this module is imported: the other packages import it themselves.
    for name in plugin_names("medthink.metrics"):
        metric = load_plugin("medthink.metrics", name)
        if not isinstance(metric, Metric):
            raise UsageError(
                f"the entry point {name} of another package is not a Metric", remedy="see docs/extending.md"
            )
        register(metric)


def register(metric: Metric) -> None:
    """Add a metric of your own; a name that is taken is refused."""
    if metric.name in METRICS:
        raise UsageError(f"there is already a metric {metric.name}", remedy="choose another name")
    METRICS[metric.name] = metric


def shown_in(place: Appearance) -> list[Metric]:
    """The text metrics that appear there, in the order of the registry."""
    kinds = ("pairs", "discussions", "components")
    return [metric for metric in all_metrics().values() if metric.kind in kinds and place in metric.shown]


def score_pairs(references: Sequence[str], candidates: Sequence[str]) -> Columns:
    """One value per pair for every registered text metric."""
    columns: Columns = {}
    for metric in all_metrics().values():
        if metric.kind != "pairs" or metric.name in columns:
            continue
        if metric.family is not None:
            columns |= metric.family(references, candidates)
        else:
            columns[metric.name] = list(metric.function(references, candidates))
    return columns


def _one_of(family: FamilyFunction, name: str) -> PairFunction:
    """One metric of a family by itself."""
    return lambda references, candidates: family(references, candidates)[name]


def _rouge_family(references: Sequence[str], candidates: Sequence[str]) -> Columns:
    plain = Rouge(KINDS).score_all(references, candidates)
    folded = list(_score_folded(plain, references, candidates))
    columns: Columns = {}
    for kind in KINDS:
        columns[kind] = [overlaps[kind].f1 for overlaps in plain]
        columns[f"{kind}_norm"] = [overlaps[kind].f1 for overlaps in folded]
    return columns


def _score_folded(
    plain: Sequence[Overlaps], references: Sequence[str], candidates: Sequence[str]
) -> Iterator[Overlaps]:
    """ROUGE of texts in one spelling; if neither text changes, the plain ROUGE value is reused."""
    rouge = Rouge(KINDS)
    for overlaps, texts in zip(plain, zip(references, candidates, strict=True), strict=True):
        folded = tuple(map(words.normalise_spelling, texts))
        # ROUGE lower-cases the texts itself.
        yield overlaps if folded == tuple(map(str.lower, texts)) else rouge.score(*folded)


def _bleu(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    return [bleu2(ref, cand) for ref, cand in zip(references, candidates, strict=True)]


def _rouges() -> Iterable[Metric]:
    for kind in KINDS:
        for normalise in (False, True):
            name = f"{kind}_norm" if normalise else kind
            yield Metric(
                name=name,
                version=f"{ROUGE_VERSION}+spelling-{words.VERSION}" if normalise else ROUGE_VERSION,
                kind="pairs",
                direction="higher",
                low=0.0,
                high=1.0,
                card="rouge_norm" if normalise else "rouge",
                function=_one_of(_rouge_family, name),
                family=_rouge_family,
                label=kind.replace("rouge", "ROUGE-"),
                note="counts shared words and does not see a negation",
                shown=EVERYWHERE if (kind, normalise) == ("rougeL", False) else (),
            )


def _bleus() -> Iterable[Metric]:
    yield Metric("bleu2", "1", "pairs", "higher", 0.0, 1.0, "bleu2", _bleu, label="BLEU-2", shown=())


def _coverages() -> Iterable[Metric]:
    yield Metric(
        name="section_coverage",
        version="1",
        kind="discussions",
        direction="higher",
        low=0.0,
        high=1.0,
        card="discussion",
        function=section_coverage,
        label="section coverage",
        note="the share of the expert's sections that the discussion has",
        shown=("tables",),
    )


_FINDINGS: dict[str, tuple[str, str, tuple[Appearance, ...]]] = {
    "finding_precision": ("finding precision", "the share of the model's statements that the expert makes", ()),
    "finding_recall": ("finding recall", "the share of the expert's statements that the model makes", ()),
    "finding_f1": ("finding F1", "counts shared statements", ("tables", "exports")),
    "finding_conflicts": ("conflicts", "statements that contradict the expert's", ("tables",)),
}


def _findings() -> Iterable[Metric]:
    for name in FINDING_VALUES:
        counts = name == "finding_conflicts"
        label, note, shown = _FINDINGS[name]
        yield Metric(
            name=name,
            version=FINDINGS_VERSION,
            kind="pairs",
            direction="lower" if counts else "higher",
            low=0.0,
            high=math.inf if counts else 1.0,
            card="findings",
            function=_one_of(_finding_family, name),
            family=_finding_family,
            label=label,
            note=note,
            shown=shown,
        )


def _finding_family(references: Sequence[str], candidates: Sequence[str]) -> Columns:
    agreements = [compare_findings(ref, cand) for ref, cand in zip(references, candidates, strict=True)]
    return {name: [read(one) for one in agreements] for name, read in FINDING_VALUES.items()}


def _radcliqs() -> Iterable[Metric]:
    for name, function in (("radcliq_v0", radcliq_v0), ("radcliq_v1", radcliq_v1)):
        yield Metric(
            name=name,
            version="1",
            kind="components",
            direction="lower",
            low=-math.inf,
            high=math.inf,
            card="radcliq",
            function=_composite_values(function),
            label=name.replace("radcliq_", "RadCliQ-"),
            note="fitted on reports of chest radiographs; for anything else it only orders texts",
            shown=("tables",) if name == "radcliq_v1" else (),
        )


def _composite_values(function: Callable[[Components], float]) -> Callable[[Sequence[Components]], list[float]]:
    return lambda components: [function(entry) for entry in components]


def _answers() -> Iterable[Metric]:
    for name in ("accuracy", "accuracy_answered"):
        function = _field_of(answers.count_answers, name)
        yield Metric(name, "1", "answers", "higher", 0.0, 1.0, "answers", function)


def _repeats() -> Iterable[Metric]:
    for name, field in (
        ("accuracy_mean", "mean"),
        ("answer_consistency", "consistency"),
        ("accuracy_majority", "majority_accuracy"),
    ):
        function = _field_of(answers.summarise_repeats, field)
        yield Metric(name, "1", "repeats", "higher", 0.0, 1.0, "answers", function)


def _usages() -> Iterable[Metric]:
    for name, direction, field in _USAGE:
        function = _field_of(usage.summarise_usage, field)
        yield Metric(name, "1", "usage", direction, 0.0, math.inf, "usage", function)


def _field_of(summarise: Callable[[Any], msgspec.Struct], field: str) -> Callable[[Any], float | None]:
    """One field of a summary, such as `accuracy` or `cost_usd.value`."""
    read = attrgetter(field)
    return lambda given: read(summarise(given))


_USAGE: tuple[tuple[str, Direction, str], ...] = (
    ("calls", "neither", "calls"),
    ("attempts", "lower", "attempts"),
    ("input_tokens", "lower", "input_tokens.value"),
    ("output_tokens", "lower", "output_tokens.value"),
    ("reasoning_tokens", "lower", "reasoning_tokens.value"),
    ("cost_usd", "lower", "cost_usd.value"),
    ("latency_mean_s", "lower", "latency_s.value"),
    ("latency_p50_s", "lower", "latency_p50_s"),
    ("latency_p95_s", "lower", "latency_p95_s"),
    ("output_tokens_per_s", "higher", "output_tokens_per_s"),
)

METRICS: dict[str, Metric] = {
    metric.name: metric
    for source in (_rouges, _bleus, _findings, _radcliqs, _coverages, _answers, _repeats, _usages)
    for metric in source()
}
