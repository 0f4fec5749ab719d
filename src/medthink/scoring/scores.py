"""`scores.json`: every score of a run with its uncertainty, counts and provenance."""

from collections import Counter
from typing import Any

import msgspec

from medthink.core.numbers import (
    NOTHING,
    as_percent,
    as_points,
    as_points_and_ends,
    as_rate,
    as_saved,
    as_usd,
    as_value_with_interval,
)
from medthink.metrics.answers import UsageSummary
from medthink.metrics.radcliq.score import Fingerprint
from medthink.metrics.registry import Direction
from medthink.stats.estimate import Estimate, Measured
from medthink.stats.repeats import Repeats

FORMAT = 1
SCORER_VERSION = "8"


class PartialRun(msgspec.Struct, frozen=True):
    """A run's progress: a stopped or running run has `done` of `due` cases."""

    done: int
    due: int

    def __str__(self) -> str:
        return f"{self.done:,} of {self.due:,} cases"


class ScoredSource(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of scored predictions: everything that must be equal, or stated, when two scores are compared."""

    name: str
    model: str
    task: str
    kind: str
    condition: dict[str, Any] | None
    condition_label: str
    split: str
    selection: dict[str, Any] | None
    fingerprint: str | None
    text_fingerprint: str
    prompts: dict[str, str]
    reported_models: tuple[str, ...]


class MetricScore(msgspec.Struct, frozen=True, kw_only=True):
    """One metric's mean with its interval; `not_computed` says why there is none.

    In `value` a text that is missing or empty is scored as an empty one; `of_written` is over the texts that were
    written, and is not given by group.
    """

    metric: str
    version: str
    direction: Direction
    value: Measured | None = None
    of_written: Measured | None = None
    not_computed: str = ""


class AnswerScores(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy of the letters: over all cases, and over those that were answered.

    With several samples per case, `repeats`, `consistency` and `majority` add detail; `chosen` counts the letters as
    shown, `confusion` is the confusion matrix: right letter (rows) by answered letter (columns), in the file's letters.
    `confusion_shown` has the letters as shown, where one was chosen.
    """

    n_cases: int
    n_predictions: int
    states: dict[str, int]
    lenient: int
    accuracy: Measured
    accuracy_answered: Measured
    chosen: dict[str, int]
    confusion: dict[str, dict[str, int]]
    confusion_shown: dict[str, dict[str, int]] = {}
    repeats: Repeats | None = None
    consistency: float | None = None
    majority: Measured | None = None


class TextScores(msgspec.Struct, frozen=True, kw_only=True):
    """Step 1, step 2 or a discussion against the expert's text: pairs by state, metrics over those with a reference.

    A text that is missing or empty is scored as an empty one, and counted here. Means are taken image → case →
    benchmark.
    `by_group` has the same by modality (step 1) or by section (discussion, where the reference has headings;
    `group_states` then counts the sections by state). `case_values` has every metric's mean for each case, for figures
    and for case-by-case comparisons. `radcliq` has the provenance of RadCliQ, if it was computed.
    """

    step: str
    states: dict[str, int]
    metrics: tuple[MetricScore, ...]
    by_group: dict[str, tuple[MetricScore, ...]] = {}
    group_states: dict[str, int] = {}
    case_values: dict[str, dict[int, float]] = {}
    radcliq: Fingerprint | msgspec.UnsetType = msgspec.UNSET


class SliceScore(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy in one slice."""

    by: str
    value: str
    n: int
    accuracy: Measured
    is_small: bool


class CaseScore(msgspec.Struct, frozen=True, kw_only=True):
    """One case: the share of its samples that were right, its states, the letters given and the right one."""

    case: int
    right: float
    states: tuple[str, ...]
    letters: tuple[str | None, ...]
    gold: str


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """All scores of a run; `partial` is set if it is unfinished."""

    format: int = FORMAT
    scorer: str = SCORER_VERSION
    package: str
    origin: ScoredSource
    answers: AnswerScores | None
    steps: tuple[TextScores, ...]
    slices: tuple[SliceScore, ...]
    usage: UsageSummary | None
    notes: tuple[str, ...]
    cases: tuple[CaseScore, ...]
    partial: PartialRun | None = None

    def __repr__(self) -> str:
        # One line, without the answers in `cases`.
        said = f"accuracy {rate_text(self.answers.accuracy)}" if self.answers else "no letters to score"
        return f"Scores({self.origin.name!r}: {said}{f', {self.partial}' if self.partial else ''})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.origin.name), ("accuracy", rate_text(self.answers.accuracy) if self.answers else None)]

    def _repr_html_(self) -> str:
        from medthink.scoring.tables import scores_card

        return scores_card(self)


def informative_slices(scores: Scores) -> list[SliceScore]:
    """The slices, without slicings that put all cases into one."""
    counts = Counter(part.by for part in scores.slices)
    return [part for part in scores.slices if counts[part.by] > 1]


def samples_per_case(scores: Scores) -> int:
    """How many answers each case has."""
    return scores.answers.n_predictions // scores.answers.n_cases if scores.answers else 1


def to_plain(scores: Scores) -> Any:
    """Plain data for JSON, floats rounded to ten digits: the last ones depend on the processor."""
    return _round(msgspec.to_builtins(scores, str_keys=True))


def from_plain(plain: Any) -> Scores:
    """The scores again, or msgspec.ValidationError."""
    return msgspec.convert(plain, Scores, str_keys=True)


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 10)
    if isinstance(value, dict):
        return {key: _round(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_round(part) for part in value]
    return value


def rate_text(measured: Measured | None) -> str:
    """`57.2 % (53.6–60.8)`, or a dash and the value if there is no interval."""
    if measured is None:
        return "–"
    if isinstance(measured, Estimate):
        return as_rate(measured.value, measured.low, measured.high)
    return "–" if measured.value is None else f"{as_percent(measured.value)} (no interval: {measured.reason})"


def difference_text(measured: Measured | None) -> str:
    """A difference of rates: `+2.7 points (−2.7 to +8.0)`."""
    if measured is None or (not isinstance(measured, Estimate) and measured.value is None):
        return "–"
    if isinstance(measured, Estimate):
        value, ends = as_points_and_ends(measured.value, measured.low, measured.high)
        return f"{value} points ({ends})"
    return f"{as_points(measured.value or 0.0)} points (no interval: {measured.reason})"


def size_text(measured: Measured) -> str:
    """The size of a difference of rates, whichever is ahead: `2.7 points`."""
    return difference_text(measured).partition(" (")[0].lstrip("+−")


def cost_text(usage: UsageSummary | None) -> str:
    """`$12.30`; `at least $12.30` where lost replies may have been billed; `over $1.20` where a price is missing.

    What a provider's cache saved is told with it: `$12.30 (cache saved $2.58)`.
    """
    if usage is None:
        return NOTHING
    total = usage.cost_usd
    if total.value is None and total.known:
        return f"over {as_usd(total.known)}"
    saved = f" (cache saved {as_saved(usage.saved_usd)})" if usage.saved_usd else ""
    return as_usd(total.value, is_least=usage.uncounted_replies > 0) + saved


def value_text(measured: Measured | None) -> str:
    """`0.143 (0.139–0.147)`, `0.010 (−0.020 to 0.040)`, or a dash."""
    if measured is None:
        return "–"
    if isinstance(measured, Estimate):
        return as_value_with_interval(measured.value, measured.low, measured.high)
    return "–" if measured.value is None else f"{measured.value:.3f} (no interval: {measured.reason})"
