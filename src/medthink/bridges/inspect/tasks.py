"""Our tasks for Inspect's users: the same functions, prompts and parsers, asked through Inspect's model."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from medthink import __version__
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Question
from medthink.cases.slices import SLICINGS
from medthink.core.errors import DataError, UsageError
from medthink.models.inspect.messages import messages_of, read_output, settings_of
from medthink.models.request import ModelError, Reply, Request
from medthink.runs.calls.asking import CaseAsk, unanswered
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import CallCost, Prediction, make_prediction
from medthink.workflow.tasks import Task, find_task, has_letters, prompt_versions, resolve_condition
from medthink.workflow.view import Showing

if TYPE_CHECKING:
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, Scorer
    from inspect_ai.solver import Solver, TaskState

# The key of our metadata in a log.
MARK = "medthink"


class TaskMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a log: a task under a condition, over a split of a benchmark.

    `model` is the model spec if the log was made from a run.
    """

    benchmark: str
    split: str
    text_fingerprint: str
    task: str
    condition: Condition
    prompts: dict[str, str]
    package: str = __version__
    model: str = ""


class CallMetadata(msgspec.Struct, frozen=True):
    """The metadata of a call: its prompt, and the digest of the request."""

    kind: str
    asked: str


def to_metadata(what: TaskMetadata | CallMetadata) -> dict[str, Any]:
    """The struct as metadata of a log."""
    return {MARK: msgspec.to_builtins(what)}


def read_task_metadata(metadata: dict[str, Any] | None, *, file: object) -> TaskMetadata | None:
    """The metadata of a log of our tasks; None for a log of another task."""
    if not metadata or MARK not in metadata:
        return None
    try:
        return msgspec.convert(metadata[MARK], TaskMetadata)
    except msgspec.ValidationError as error:
        raise DataError(
            f"its MedThink metadata cannot be read: {error}",
            file=file,
            remedy="use the release of medthink that made it",
        ) from None


def digest_asked(request: Request) -> str:
    """The digest of the request, without the settings that Inspect's own flags can change."""
    return replace(request, max_tokens=None, temperature=None, seed=None, effort=None).key()


# Cases of one category are alike; the standard error takes them together.
CLUSTER = "cluster"
GROUPS = ("images per case", "longitudinal", "ICD chapter")
_REASONS = {"unparsed": "invalid_response_format", "refused": "refusal", "truncated": "truncated", "failed": "failed"}


class InspectCallMaker:
    """Makes the calls of a case with the model that Inspect evaluates, with Inspect's own retries, limits and log."""

    def __init__(self) -> None:
        self._numbers = count(1)

    async def call(self, prompt: Prompt, request: Request, case_id: int) -> tuple[Reply, CallCost]:  # noqa: ARG002
        """Answer the request, or raise Unanswered; errors of the provider are handled by Inspect."""
        from inspect_ai.model import get_model

        messages = messages_of(request, to_metadata(CallMetadata(prompt.kind, digest_asked(request))))
        output = await get_model().generate(messages, config=settings_of(request))
        try:
            reply = read_output(output, wants_json=False)
        except ModelError as error:
            raise unanswered(error) from None
        return reply, CallCost(next(self._numbers), reply.usage, None, output.time or 0.0)


def build_task(name: str, data: str, split: str, condition: dict[str, Any]) -> "inspect_ai.Task":
    """The task over a split of a benchmark; `condition` gives the fields of a condition that are not the default."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset

    benchmark = Benchmark.open(Path(data))
    settled = resolve_condition(name, _read_condition(condition))
    task = find_task(name, settled)
    showing = Showing(settled, benchmark[split])
    samples = [_sample(case, showing.show(case)[0].question) for case in benchmark[split]]
    return inspect_ai.Task(
        dataset=MemoryDataset(samples, name=f"{Path(data).name}/{split}"),
        solver=_solve(task, settled, benchmark, showing),
        scorer=score_letter() if has_letters(name, settled) else score_completeness(),
        name=name,
        metadata=to_metadata(
            TaskMetadata(
                benchmark=data,
                split=split,
                text_fingerprint=benchmark[split].text_fingerprint(),
                task=name,
                condition=settled,
                prompts={str(kind): version for kind, version in prompt_versions(name, settled).items()},
            )
        ),
    )


def describe_case(case: Case) -> dict[str, str]:
    """The slices that a case is in, as metadata to group by, and the cluster of its standard error."""
    slices = {name: " + ".join(values(case)) for name, values in SLICINGS.items()}
    return slices | {CLUSTER: case.reference.icd_category or f"case {case.id}"}


def question_text(question: Question) -> str:
    """The question as text, for a list of samples; the prompts are in the calls."""
    options = "\n".join(f"{letter}. {text}" for letter, text in question.options.items())
    return "\n\n".join(part for part in (question.history, options) if part) or "(nothing but images)"


def as_score(prediction: Prediction, target: str) -> "Score":
    """A prediction as Inspect's score; one without an answer counts as wrong and keeps its state."""
    from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score

    is_ok = prediction.state == "ok"
    value = NOANSWER if not is_ok else CORRECT if prediction.prediction == target else INCORRECT
    return Score(
        value=value,
        answer=prediction.prediction,
        explanation=prediction.prediction_rationale or prediction.detail or None,
        reason=_REASONS.get(prediction.state),
        metadata={"state": prediction.state, "prediction": msgspec.to_builtins(prediction)},
    )


def _read_condition(fields: dict[str, Any]) -> Condition:
    try:
        condition = msgspec.convert(fields, Condition)
    except msgspec.ValidationError as error:
        raise UsageError(f"not a condition: {error}", remedy="docs/conditions.md names the fields") from None
    if condition.samples != 1:
        raise UsageError("Inspect uses epochs instead of samples", remedy="leave out samples, and use --epochs")
    return condition


def _sample(case: Case, shown: Question) -> "Sample":
    from inspect_ai.dataset import Sample

    return Sample(
        input=question_text(shown),
        choices=list(case.question.options.values()) or None,
        target=case.reference.answer,
        id=case.id,
        metadata=describe_case(case),
    )


def _solve(task: Task, condition: Condition, benchmark: Benchmark, showing: Showing) -> "Solver":
    from inspect_ai.solver import Generate, solver

    @solver(name=f"medthink_{task.name}")  # type: ignore[untyped-decorator]
    def solve() -> "Solver":
        async def run(state: "TaskState", generate: Generate) -> "TaskState":  # noqa: ARG001
            case = benchmark.case(int(state.sample_id))
            shown, cues = showing.show(case)
            ask = CaseAsk(InspectCallMaker(), condition, case_id=case.id, sample=state.epoch - 1)
            outcome = await task.run(shown.question, cues, ask, condition)
            prediction = make_prediction(case, state.epoch - 1, shown, outcome, ask.spent)
            state.store.set("prediction", msgspec.to_builtins(prediction))
            state.output.completion = prediction.prediction or prediction.prediction_text or prediction.state
            return state

        return run

    return solve()


def _prediction_of(state: "TaskState") -> Prediction:
    return msgspec.convert(state.store.get("prediction"), Prediction)


def score_letter() -> "Scorer":
    """Whether the letter is right, with clustered standard errors and by groups of cases."""
    from inspect_ai.scorer import Target, accuracy, grouped, scorer, stderr

    groups = [grouped(accuracy(), key, all=False, name_template=key + ": {group_name}") for key in GROUPS]

    @scorer(metrics=[accuracy(), stderr(cluster=CLUSTER), *groups], name="letter")  # type: ignore[untyped-decorator]
    def letter() -> "Scorer":
        async def score(state: "TaskState", target: Target) -> "Score":
            return as_score(_prediction_of(state), target.text)

        return score

    return letter()


def score_completeness() -> "Scorer":
    """Whether the text is complete; its quality is scored by `medthink score` and `medthink judge` after import."""
    from inspect_ai.scorer import Score, Target, mean, scorer, stderr

    @scorer(metrics=[mean(), stderr(cluster=CLUSTER)], name="complete")  # type: ignore[untyped-decorator]
    def complete() -> "Scorer":
        async def score(state: "TaskState", target: Target) -> "Score":  # noqa: ARG001
            scored = as_score(_prediction_of(state), "")
            return Score(value=float(scored.reason is None), reason=scored.reason, metadata=scored.metadata)

        return score

    return complete()
