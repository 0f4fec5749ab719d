"""Import of an Inspect log as a run: our own tasks' calls go through our engine again; of other tasks, the letters.

The engine asks the log instead of a model. Therefore the ledger, the predictions and their states come
from the same code as those of any run, and the run can be continued, scored and judged like any other.
"""

import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from msgspec.structs import replace

from medthink.bridges.inspect.tasks import MARK, TaskMetadata, digest_asked, read_task_metadata
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import LETTERS
from medthink.core.errors import DataError, UsageError
from medthink.core.jsonio import write_jsonl
from medthink.models.inspect.messages import read_output
from medthink.models.inspect.model import need_inspect
from medthink.models.prices import load_prices
from medthink.models.request import Attempt, AttemptLog, Effort, ModelError, Reply, Request
from medthink.runs.calls.answerers import AddedAnswerer, HasKind
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.selection import Selection
from medthink.runs.session import run_session
from medthink.workflow.ask import PromptKind
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import prompt_versions

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalLog, EvalSample


class ImportedLog(NamedTuple):
    """The result of an import: a run, or a file of answers and their number."""

    run: Run | None = None
    answers: int = 0


def import_log(file: Path, out: Path, data: Path | None = None) -> ImportedLog:
    """Import a log of our tasks as a run, or another log as a submission file."""
    need_inspect()
    log = _read_header(file)
    mark = read_task_metadata(log.eval.metadata, file=file)
    if out.exists():
        raise UsageError(f"{out} exists", remedy="choose another --out")
    if mark is None:
        return ImportedLog(answers=_write_answers(file, out))
    return ImportedLog(run=_make_run(file, log, mark, out, data))


class LogAnswerer(AddedAnswerer):
    """Answers the requests whose reply is in a log, and nothing else."""

    # Nothing waits for a network, and what the log lacks is missing for one case alone.
    concurrency = 1
    is_remote = False

    def __init__(self, spec: str, events: "dict[str, ModelEvent]") -> None:
        self.spec = spec
        self._price = load_prices().find(spec)
        self._events = events

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Nothing is refused: the log shows what was accepted."""

    async def answer(self, prompt: HasKind, request: Request, log: AttemptLog) -> Reply:
        """The recorded reply."""
        event = self._events.get(digest_asked(request))
        if event is None:
            raise ModelError("unsupported", f"the log has no reply to this {prompt.kind} prompt")
        outcome, usage, latency = "ok", None, event.output.time or 0.0
        try:
            reply = _reply_of(event)
            usage = reply.usage
            return replace(reply, latency_s=latency)
        except ModelError as error:
            outcome, usage = error.kind, error.usage
            raise
        finally:
            log.note(
                Attempt(number=1, endpoint="inspect log", outcome=outcome, is_sent=True, latency_s=latency, usage=usage)
            )


def _reply_of(event: "ModelEvent") -> Reply:
    if event.error:
        raise ModelError("server", event.error.strip().partition("\n")[0][:300])
    return read_output(event.output, wants_json=False)


def _make_run(file: Path, log: "EvalLog", mark: TaskMetadata, out: Path, data: Path | None) -> Run:
    place = data or Path(mark.benchmark)
    if not place.exists():
        raise UsageError(f"{file}: its benchmark is not at {place}", remedy="give its path with --data")
    split = Benchmark.open(place)[mark.split]
    _refuse_other(file, mark, split.text_fingerprint(), place)
    events: dict[str, ModelEvent] = {}
    found: set[int] = set()
    epochs = 1
    for sample in _samples(file):
        found.add(int(sample.id))
        epochs = max(epochs, sample.epoch)
        events |= _marked_events(sample)
    if all(event.error for event in events.values()):
        raise DataError(
            "no sample of it is finished: no call was answered",
            file=file,
            remedy=f"finish the evaluation first: inspect eval-retry {file.name}",
        )
    chosen = None if found == {case.id for case in split} else tuple(sorted(found))
    spec = RunSpec(
        benchmark=place,
        model=mark.model or f"inspect/{log.eval.model}",
        out=out,
        task=mark.task,
        condition=_condition(file, log, mark, epochs),
        selection=Selection(split=mark.split, cases=chosen),
        preflight=False,
    )
    return run_session(spec, answerer=LogAnswerer(spec.model, events)).run


def _marked_events(sample: "EvalSample") -> "dict[str, ModelEvent]":
    """The calls of a sample by what they asked; of a call that was retried the answered one counts."""
    found: dict[str, ModelEvent] = {}
    for event in sample.events:
        if event.event != "model" or not event.input:
            continue
        noted = (event.input[-1].metadata or {}).get(MARK)
        if noted and (noted["asked"] not in found or not event.error):
            found[noted["asked"]] = event
    return found


def _refuse_other(file: Path, mark: TaskMetadata, text_fingerprint: str, place: Path) -> None:
    if text_fingerprint != mark.text_fingerprint:
        raise UsageError(
            f"{place} is not the benchmark that {file} was made on: its texts differ",
            remedy="give the right one with --data",
        )
    ours = {str(kind): version for kind, version in prompt_versions(mark.task, mark.condition).items()}
    if ours != mark.prompts:
        raise UsageError(
            f"{file} was made by MedThink {mark.package} with other prompts", remedy="import it with that release"
        )


def _condition(file: Path, log: "EvalLog", mark: TaskMetadata, epochs: int) -> Condition:
    """The condition of the task, with what Inspect's own flags set."""
    asked = log.eval.model_generate_config.merge(log.plan.config)
    settings = {"temperature": asked.temperature, "max_tokens": asked.max_tokens, "effort": asked.reasoning_effort}
    if asked.reasoning_effort not in (None, *get_args(Effort)):
        raise UsageError(
            f"{file}: MedThink does not support the effort {asked.reasoning_effort}", remedy="choose another log"
        )
    if asked.seed is not None and epochs > 1:
        raise UsageError(
            f"{file}: all its epochs used one seed",
            remedy="give the seed to the task: -T 'condition={model_seed: 1}'",
        )
    settings["model_seed"] = asked.seed
    given = {name: value for name, value in settings.items() if value is not None}
    return replace(mark.condition, samples=epochs, **given)


def _write_answers(file: Path, out: Path) -> int:
    """Write the answers found by another task's scorers as a submission; returns the number of samples."""
    rows = [_answer_row(sample) for sample in _samples(file)]
    if not any(row["prediction"] for row in rows):
        raise DataError(
            "none of its scores names a letter",
            file=file,
            remedy="use a scorer that records the answer, such as choice",
        )
    write_jsonl(out, rows)
    return len(rows)


def _answer_row(sample: "EvalSample") -> dict[str, Any]:
    named = (score.answer.strip().upper() for score in (sample.scores or {}).values() if score.answer)
    letter = next((one for one in named if len(one) == 1 and one in LETTERS), None)
    case = {"case": int(sample.id)} if str(sample.id).isdecimal() else {"title": str(sample.id)}
    text = sample.output.completion or None
    return case | {"sample": sample.epoch - 1, "prediction": letter, "prediction_rationale": text}


def _read_header(file: Path) -> "EvalLog":
    from inspect_ai.log import read_eval_log

    if not file.is_file():
        raise DataError("there is no such file", file=file, remedy="give an Inspect log, such as LOG.eval")
    try:
        return read_eval_log(str(file), header_only=True)
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        problem = f"not an Inspect log: {str(error).partition(chr(10))[0]}"
        raise DataError(problem, file=file, remedy="give a log that inspect eval wrote") from None


def _samples(file: Path) -> "Iterator[EvalSample]":
    from inspect_ai.log import read_eval_log_samples

    try:
        yield from read_eval_log_samples(str(file), all_samples_required=False, resolve_attachments=True)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"a sample cannot be read: {str(error).partition(chr(10))[0]}", file=file, remedy="copy the log again"
        ) from None
