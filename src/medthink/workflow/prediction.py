"""What comes out of a run for a case: one line of `predictions.jsonl`."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from medthink.cases.case import Case
from medthink.models.request import Usage
from medthink.workflow.ask import (
    AnswerOutcome,
    Choice,
    DiscussionOutcome,
    Mode,
    Outcome,
    RecallOutcome,
    RecallReply,
    Sections,
    State,
    StepText,
    TwiOutcome,
)
from medthink.workflow.view import Shown


class CallCost(NamedTuple):
    """What one call of a case used."""

    call_id: int
    usage: Usage | None
    cost_usd: float | None
    latency_s: float | None


class TwiSteps(msgspec.Struct, frozen=True):
    """The three steps under the names of the submission format; a step not asked for or not reached is None."""

    step1_per_image_findings: tuple[str | None, ...] | None
    step2_integrated_summary: str | None
    step3_differential_reasoning: str | None


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said about a case, its final state, and what it used.

    `prediction` is the letter in the benchmark's own file, whatever order the options were shown in;
    `letter_shown` is the one the model named. `slots` says which images were shown, in the order shown (with swapped
    images, the slots of the other case). `cost_usd` is None when the price is not known, and tokens are None when the
    provider does not count them; `latency_s` is None when a call's is not known.
    """

    case: int
    split: str
    sample: int
    state: State
    detail: str = ""
    prediction: str | None = None
    prediction_rationale: str | None = None
    prediction_twi: TwiSteps | None = None
    prediction_text: str | None = None
    discussion: dict[str, str] | None = None
    recall: RecallReply | msgspec.UnsetType = msgspec.UNSET
    letter_shown: str | None = None
    parse_mode: Mode | None = None
    lenient_steps: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    tokens: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = 0.0


def make_prediction(case: Case, sample: int, shown: Shown, outcome: Outcome, spent: list[CallCost]) -> Prediction:
    """Combine a task's outcome with what its calls used."""
    # Two steps that asked the same thing share a call.
    spent = sorted({one.call_id: one for one in spent}.values())
    choice = outcome.choice if isinstance(outcome, AnswerOutcome | TwiOutcome) else None
    usages = [one.usage for one in spent]
    costs = [one.cost_usd for one in spent]
    times = [one.latency_s for one in spent]
    return Prediction(
        case=case.id,
        split=case.split,
        sample=sample,
        state=outcome.state,
        detail=outcome.detail,
        prediction=shown.original(choice.letter) if choice else None,
        prediction_rationale=choice.explanation if choice else None,
        prediction_twi=_steps(outcome, choice),
        prediction_text=choice.text if choice else None,
        discussion=_sections(outcome),
        recall=(isinstance(outcome, RecallOutcome) and outcome.recollection) or msgspec.UNSET,
        letter_shown=choice.letter if choice else None,
        parse_mode=choice.mode if choice else None,
        lenient_steps=_lenient_steps(outcome),
        slots=tuple(image.slot for image in shown.question.images),
        calls=tuple(one.call_id for one in spent),
        tokens=None if None in usages else sum((usage for usage in usages if usage), Usage()),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost),
        latency_s=None if None in times else round(sum(time for time in times if time), 6),
    )


def _steps(outcome: Outcome, choice: Choice | None) -> TwiSteps | None:
    if not isinstance(outcome, TwiOutcome):
        return None
    findings = None if outcome.findings is None else tuple(map(_words, outcome.findings))
    return TwiSteps(findings, _words(outcome.summary), choice.explanation if choice else None)


def _words(text: StepText | None) -> str | None:
    return None if text is None else text.text


def _sections(outcome: Outcome) -> dict[str, str] | None:
    return outcome.sections.texts if isinstance(outcome, DiscussionOutcome) and outcome.sections else None


def _lenient_steps(outcome: Outcome) -> tuple[str, ...]:
    """The steps whose reply did not follow its form but could be read."""
    read: dict[str, Sequence[StepText | Choice | Sections | None]] = {}
    match outcome:
        case AnswerOutcome():
            read = {"answer": [outcome.choice]}
        case TwiOutcome():
            read = {"findings": outcome.findings or (), "summary": [outcome.summary], "differential": [outcome.choice]}
        case DiscussionOutcome():
            read = {"discussion": [outcome.sections]}
    return tuple(step for step, texts in read.items() if any(text and text.mode == "lenient" for text in texts))
