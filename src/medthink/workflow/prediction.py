"""What a task ends in: its outcome, and the line of `predictions.jsonl` that keeps it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from medthink.cases.case import Case
from medthink.models.request import Usage
from medthink.workflow.ask import Choice, Mode, Sections, State, StepText, Unanswered
from medthink.workflow.view import Shown

Part = StepText | Choice | Sections | None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a task; `detail` says why the state is not ok, or which part of an ok reply could not be used.

    A field of a subclass that holds a `StepText` is a text of the task's own: it is stored under `texts` by its name.
    """

    state: State = "ok"
    detail: str = ""

    def parts(self) -> Mapping[str, Sequence[Part]]:
        """What was read from the replies, by what was asked for."""
        return {name: [text] for name, text in self._own_texts().items()}

    def stored(self, shown: Shown) -> dict[str, Any]:  # noqa: ARG002
        """The fields of a prediction that keep what was said; `shown` leads from the letters shown to the file's."""
        texts = {name: text.text for name, text in self._own_texts().items()}
        return {"texts": texts} if texts else {}

    def _own_texts(self) -> dict[str, StepText]:
        held = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: text for name, text in held.items() if isinstance(text, StepText)}


class AnswerOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of a task that ends in an answer."""

    choice: Choice | None = None

    def parts(self) -> Mapping[str, Sequence[Part]]:
        """The answer, and texts of the task's own."""
        return {**super().parts(), "answer": [self.choice]}

    def stored(self, shown: Shown) -> dict[str, Any]:
        """Letter, reasoning and diagnosis, and texts of the task's own."""
        return super().stored(shown) | _stored_choice(self.choice, shown)


class TwiSteps(msgspec.Struct, frozen=True):
    """The three steps under the names of the submission format; a step not asked for or not reached is None."""

    step1_per_image_findings: tuple[str | None, ...] | None
    step2_integrated_summary: str | None
    step3_differential_reasoning: str | None


class TwiOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `twi`: what the model itself wrote.

    A step that was skipped, given by an expert or not reached is None, and so is one image's finding that is missing.
    """

    findings: tuple[StepText | None, ...] | None = None
    summary: StepText | None = None
    choice: Choice | None = None

    def parts(self) -> Mapping[str, Sequence[Part]]:
        """The three steps."""
        return {"findings": self.findings or (), "summary": [self.summary], "differential": [self.choice]}

    def stored(self, shown: Shown) -> dict[str, Any]:
        """The answer, and the steps under the names of the submission format."""
        steps = TwiSteps(
            step1_per_image_findings=None if self.findings is None else tuple(map(_words, self.findings)),
            step2_integrated_summary=_words(self.summary),
            step3_differential_reasoning=self.choice.explanation if self.choice else None,
        )
        return _stored_choice(self.choice, shown) | {"prediction_twi": steps}


class DiscussionOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `discussion`."""

    sections: Sections | None = None

    def parts(self) -> Mapping[str, Sequence[Part]]:
        """All sections as one reply."""
        return {"discussion": [self.sections]}

    def stored(self, shown: Shown) -> dict[str, Any]:  # noqa: ARG002
        """The sections by name."""
        return {"discussion": self.sections and self.sections.texts}


class RecallReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's replies to questions that only memory of the published case can answer; None if unreadable.

    `hidden` is the letter of the option that was hidden. `option` is what the model wrote in its place with the others
    in the published order, `option_reordered` with the others in another order. `letters` gives the published letter
    of each option as the model named it, `number` the case's number (None too where the model does not know it).
    """

    hidden: str
    option: str | None = None
    option_reordered: str | None = None
    letters: dict[str, str] | None = None
    number: int | None = None


class RecallOutcome(Outcome, frozen=True, kw_only=True):
    """The outcome of `recall`."""

    recollection: RecallReply | None = None

    def stored(self, shown: Shown) -> dict[str, Any]:  # noqa: ARG002
        """The recollection, unchanged."""
        return {"recall": self.recollection or msgspec.UNSET}


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def outcome_so_far(outcome: AnyOutcome, stop: Unanswered) -> AnyOutcome:
    """The outcome so far, with the state of the failure that stopped it."""
    return msgspec.structs.replace(outcome, state=stop.state, detail=stop.detail)


def _words(text: StepText | None) -> str | None:
    return None if text is None else text.text


def _stored_choice(choice: Choice | None, shown: Shown) -> dict[str, Any]:
    if choice is None:
        return {}
    return {
        "prediction": shown.original(choice.letter),
        "prediction_rationale": choice.explanation,
        "prediction_text": choice.text,
        "letter_shown": choice.letter,
        "parse_mode": choice.mode,
    }


class CallCost(NamedTuple):
    """The cost and tokens of one call of a case."""

    call_id: int
    usage: Usage | None
    cost_usd: float | None
    latency_s: float | None


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer to a case, its final state, and its usage.

    `prediction` is the letter in the benchmark's own file, whatever order the options were shown in;
    `letter_shown` is the one the model named. `texts` are a task's own, by name; it is left out where a task has none.
    `slots` says which images were shown, in the order shown (with swapped images, the slots of the other case).
    `cost_usd` is None when the price is not known, and tokens are None when the provider does not count them;
    `latency_s` is None when a call's is not known.
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
    texts: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    letter_shown: str | None = None
    parse_mode: Mode | None = None
    lenient_steps: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    tokens: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = 0.0


def make_prediction(case: Case, sample: int, shown: Shown, outcome: Outcome, spent: list[CallCost]) -> Prediction:
    """Combine a task's outcome with the usage of its calls."""
    # Two steps that asked the same thing share a call.
    spent = sorted({one.call_id: one for one in spent}.values())
    usages = [one.usage for one in spent]
    costs = [one.cost_usd for one in spent]
    times = [one.latency_s for one in spent]
    return Prediction(
        case=case.id,
        split=case.split,
        sample=sample,
        state=outcome.state,
        detail=outcome.detail,
        lenient_steps=_lenient_steps(outcome),
        slots=tuple(image.slot for image in shown.question.images),
        calls=tuple(one.call_id for one in spent),
        tokens=None if None in usages else sum((usage for usage in usages if usage), Usage()),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost),
        latency_s=None if None in times else round(sum(time for time in times if time), 6),
        **outcome.stored(shown),
    )


def _lenient_steps(outcome: Outcome) -> tuple[str, ...]:
    """The steps whose reply did not follow its form but could be read."""
    read = outcome.parts().items()
    return tuple(step for step, parts in read if any(part and part.mode == "lenient" for part in parts))
