"""Export of a run as an Inspect log: a sample for each prediction, a model event for each call."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from medthink.bridges.inspect.tasks import (
    CLUSTER,
    GROUPS,
    CallMetadata,
    TaskMetadata,
    as_score,
    describe_case,
    digest_asked,
    question_text,
    to_metadata,
)
from medthink.bridges.targets import TargetOptions, TargetProgress, WrittenTarget
from medthink.cases.case import Case, Image, Question
from medthink.core.errors import DataError, UsageError
from medthink.core.files import write_atomic
from medthink.core.numbers import count_of
from medthink.models.inspect.messages import messages_of, settings_of
from medthink.models.inspect.model import need_inspect
from medthink.models.request import ImagePart, Reply, Request, Schema, TextPart, Usage
from medthink.runs.calls.asking import encode_image
from medthink.runs.manifest import Manifest
from medthink.runs.trace import CallTrace, CaseTrace, SentImage, Trace
from medthink.workflow.prediction import Prediction
from medthink.workflow.tasks import has_letters
from medthink.workflow.view import Showing

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

_STOPS: dict[str, Any] = {
    "end": "stop",
    "truncated": "max_tokens",
    "refused": "content_filter",
    "filtered": "content_filter",
}


def export_log(run: Path, out: Path, options: TargetOptions, progress: TargetProgress) -> WrittenTarget:
    """Write the run as a log that `inspect view` opens and `medthink import` imports again."""
    need_inspect()
    from inspect_ai.log import write_eval_log

    if out.suffix != ".eval":
        raise UsageError(f"{out} would not be recognised as a log", remedy="give a name that ends in .eval")
    if out.exists():
        raise UsageError(f"{out} exists", remedy="choose another name, or remove it")
    with closing(Trace(run, options.data)) as trace:
        if trace.benchmark is None:
            raise UsageError(f"{run}: {trace.doubt}", remedy="a log shows the questions, so the benchmark is needed")
        book = _Book(trace, has_images=options.embed_images)
        log = book.write(progress)
    with TemporaryDirectory() as folder:
        part = Path(folder) / out.name
        write_eval_log(log, str(part))
        write_atomic(out, [part.read_bytes()])
    images = "with images" if options.embed_images else "without images (add --embed-images to include them)"
    return WrittenTarget(
        lines=(
            f"{count_of(len(log.samples or ()), 'sample')}, {count_of(book.calls, 'call')}, {images} → {out}",
            f"inspect view --log-dir {out.parent}",
        )
    )


class _Book:
    """The state of an export."""

    def __init__(self, trace: Trace, *, has_images: bool) -> None:
        assert trace.benchmark is not None
        self._trace = trace
        self._manifest: Manifest = trace.manifest
        self._split = trace.benchmark
        self._showing = Showing(self._manifest.condition, self._split)
        self._has_images = has_images
        self._has_letters = has_letters(self._manifest.task, self._manifest.condition)
        # A log of a model that was asked through Inspect names it as Inspect does.
        self._model = self._manifest.model.removeprefix("inspect/")
        self.calls = 0

    def write(self, progress: TargetProgress) -> "EvalLog":
        """The whole log."""
        from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalResults, EvalSpec, EvalStats

        cases = [number for number, _ in groupby(self._trace.rows(), key=lambda row: row.case)]
        samples = []
        for number in cases:
            progress("cases", len(cases))
            samples += list(self._samples(self._trace.case(number)))
        if not samples:
            raise UsageError(
                f"{self._trace.path}: none of its cases is finished, so a log would be empty",
                remedy="run its command again, then export it",
            )
        manifest, made = self._manifest, self._manifest.progress
        name = f"{manifest.benchmark_name}/{manifest.selection.split}"
        digest = manifest.digest()
        spec = EvalSpec(
            created=manifest.created_at,
            task=f"medthink/{manifest.task}",
            run_id=digest[:22],
            task_id=digest[22:44],
            dataset=EvalDataset(name=name, samples=len(cases), sample_ids=cases),
            model=self._model,
            config=EvalConfig(epochs=manifest.condition.samples),
            metadata=to_metadata(self._mark()) | {"run": msgspec.to_builtins(manifest)},
        )
        log = EvalLog(
            status="success" if made is not None and made.is_complete else "cancelled",
            eval=spec,
            results=EvalResults(
                total_samples=len(samples), completed_samples=sum(sample.error is None for sample in samples)
            ),
            stats=EvalStats(
                started_at=(made and made.first_call_at) or "",
                completed_at=(made and made.last_call_at) or "",
                model_usage={self._model: _usage(self._trace.tokens())},
            ),
            samples=samples,
        )
        return self._with_metrics(log)

    def _with_metrics(self, log: "EvalLog") -> "EvalLog":
        """The log with the metrics that Inspect computes from the samples' scores."""
        from inspect_ai.log import EvalMetric, EvalScore
        from inspect_ai.scorer import SampleScore, accuracy, grouped, mean, stderr

        scorer = "letter" if self._has_letters else "complete"
        scores = [
            SampleScore(score=sample.scores[scorer], sample_id=sample.id, sample_metadata=sample.metadata)
            for sample in log.samples or ()
        ]
        found = {"accuracy" if self._has_letters else "mean": (accuracy() if self._has_letters else mean())(scores)}
        found["stderr"] = stderr(cluster=CLUSTER)(scores)
        for key in GROUPS if self._has_letters else ():
            found |= grouped(accuracy(), key, all=False, name_template=key + ": {group_name}")(scores)
        metrics = {name: EvalMetric(name=name, value=float(value)) for name, value in found.items()}
        assert log.results is not None
        log.results.scores = [EvalScore(name=scorer, scorer=scorer, metrics=metrics)]
        return log

    def _mark(self) -> TaskMetadata:
        manifest = self._manifest
        return TaskMetadata(
            benchmark=str(self._split.path.absolute()),
            split=manifest.selection.split,
            text_fingerprint=manifest.text_fingerprint,
            task=manifest.task,
            condition=manifest.condition,
            prompts=manifest.prompts,
            package=manifest.package,
            model=manifest.model,
        )

    def _samples(self, traced: CaseTrace) -> Iterator["EvalSample"]:
        from inspect_ai.log import EvalError, EvalSample

        case = self._split.case(traced.case)
        shown = self._showing.show(case)[0].question
        images = self._encode(shown) if self._has_images else {}
        for prediction in traced.predictions:
            calls = [call for call in traced.calls if call.sample == prediction.sample]
            made = [call for call in calls if call.reply is not None or call.error_kind]
            begun, ended = _span(made)
            events = [self._event(call, images, begun) for call in made]
            self.calls += len(events)
            last = events[-1] if events else None
            yield EvalSample(
                id=case.id,
                epoch=prediction.sample + 1,
                input=question_text(shown),
                choices=list(case.question.options.values()) or None,
                target=case.reference.answer if self._has_letters else "",
                messages=[] if last is None else [*last.input, *(choice.message for choice in last.output.choices)],
                output=last.output if last is not None else _no_output(self._model),
                scores=self._score(prediction, case),
                metadata=describe_case(case),
                store={"prediction": msgspec.to_builtins(prediction)},
                events=events,
                model_usage={self._model: _usage(prediction.tokens)} if prediction.tokens else {},
                started_at=None if begun is None else begun.isoformat(),
                completed_at=None if ended is None else ended.isoformat(),
                total_time=None if begun is None or ended is None else (ended - begun).total_seconds(),
                working_time=prediction.latency_s,
                error=EvalError(message=prediction.detail or "failed", traceback="", traceback_ansi="")
                if prediction.state == "failed"
                else None,
            )

    def _score(self, prediction: Prediction, case: Case) -> "dict[str, Score]":
        from inspect_ai.scorer import Score

        scored = as_score(prediction, case.reference.answer)
        if self._has_letters:
            return {"letter": scored}
        is_whole = float(prediction.state == "ok")
        return {"complete": Score(value=is_whole, reason=scored.reason, metadata=scored.metadata)}

    def _event(self, call: CallTrace, images: dict[str, ImagePart], begun: datetime | None) -> "ModelEvent":
        from inspect_ai.event import ModelEvent

        request = _request(call, images)
        started = datetime.fromisoformat(call.started_at)
        reply = call.reply
        problem = "" if reply is not None else f"{call.error_kind}: {call.error_detail}"
        return ModelEvent(
            model=self._model,
            input=_name_absent(messages_of(request, to_metadata(CallMetadata(call.kind, digest_asked(request))))),
            tools=[],
            tool_choice="none",
            config=settings_of(request),
            output=_no_output(self._model) if reply is None else _output(reply),
            error=problem or None,
            timestamp=started,
            working_start=0.0 if begun is None else (started - begun).total_seconds(),
            completed=_end_of(call),
            working_time=None if reply is None else reply.latency_s,
            retries=max(0, len(call.attempts) - 1) or None,
        )

    def _encode(self, shown: Question) -> dict[str, ImagePart]:
        """The images as they were sent, by digest; one that cannot be read any more is left out."""
        parts = (self._encode_one(image) for image in shown.images)
        return {part.digest: part for part in parts if part is not None}

    def _encode_one(self, image: Image) -> ImagePart | None:
        try:
            return encode_image(image, self._manifest.condition)
        except DataError:
            return None


def _span(calls: list[CallTrace]) -> tuple[datetime | None, datetime | None]:
    """When the first of the calls was begun, and when the last of them ended."""
    begun = [datetime.fromisoformat(call.started_at) for call in calls]
    ended = [end for end in map(_end_of, calls) if end is not None]
    return min(begun, default=None), max(ended, default=None)


def _end_of(call: CallTrace) -> datetime | None:
    """When a call ended: by its latency where that is known, since the ledger's times are whole seconds."""
    if call.reply is not None and call.reply.latency_s is not None:
        return datetime.fromisoformat(call.started_at) + timedelta(seconds=call.reply.latency_s)
    return None if call.ended_at is None else datetime.fromisoformat(call.ended_at)


def _request(call: CallTrace, images: dict[str, ImagePart]) -> Request:
    """The request, with the images' bytes if they are available."""
    parts = tuple(_part(part, images) for part in call.parts)
    schema = None if call.schema is None else Schema(*call.schema)
    return Request(system=call.system, parts=parts, schema=schema, sample=call.sample, **call.settings)


def _part(part: str | SentImage, images: dict[str, ImagePart]) -> TextPart | ImagePart:
    if isinstance(part, str):
        return TextPart(part)
    # The digest, which the key is made of, stays the same without the bytes.
    media_type: Any = part.media_type
    return images.get(part.digest) or ImagePart(media_type, part.digest, b"")


def _name_absent(messages: list[Any]) -> list[Any]:
    """Messages in which each image that has no bytes is a line that names it."""
    from inspect_ai.model import ContentText

    for message in messages:
        if not isinstance(message.content, str):
            message.content = [
                ContentText(text="[image]") if part.type == "image" and part.image.endswith(";base64,") else part
                for part in message.content
            ]
    return messages


def _output(reply: Reply) -> "ModelOutput":
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        StopDetails,
    )

    thought = [ContentReasoning(reasoning=reply.reasoning)] if reply.reasoning else []
    details = StopDetails(type="refusal", explanation="refused") if reply.stop == "refused" else None
    message = ChatMessageAssistant(
        content=[*thought, ContentText(text=reply.text)], model=reply.model, source="generate"
    )
    return ModelOutput(
        model=reply.model,
        choices=[ChatCompletionChoice(message=message, stop_reason=_STOPS[reply.stop], stop_details=details)],
        usage=None if reply.usage is None else _usage(reply.usage),
        time=reply.latency_s,
    )


def _no_output(model: str) -> "ModelOutput":
    from inspect_ai.model import ModelOutput

    return ModelOutput(model=model)


def _usage(usage: Usage) -> "ModelUsage":
    """Tokens in Inspect's sense: its input leaves out what came from the cache."""
    from inspect_ai.model import ModelUsage

    return ModelUsage(
        input_tokens=usage.input - usage.cached,
        input_tokens_cache_read=usage.cached,
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        total_tokens=usage.input + usage.output,
    )
