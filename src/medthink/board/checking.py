"""Checks of a submission; the same code is used by `medthink submission check`, `medthink board add` and the server."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from medthink.board.submissions import Provenance, QueueProgress
from medthink.cases.benchmark import Benchmark, HeldSplit
from medthink.cases.case import Case
from medthink.core.files import open_for_reading
from medthink.core.jsonio import read_jsonl
from medthink.metrics.answers import CallUsage, UsageSummary, summarise_usage
from medthink.models.request import Reply, Request
from medthink.runs.calls.asking import CaseAsk
from medthink.runs.engine import run_to_end
from medthink.runs.manifest import Manifest
from medthink.scoring.inputs import ScoringInput
from medthink.scoring.score import score
from medthink.scoring.scores import Scores
from medthink.scoring.submission_file import SubmissionFile, read_submission
from medthink.workflow.ask import Prompt, Unanswered
from medthink.workflow.prediction import CallCost, Prediction, make_prediction
from medthink.workflow.tasks import TASKS, Task
from medthink.workflow.view import Showing

_WORDS = re.compile(r"\w+")
# Fifteen consecutive words do not match by chance: radiologists' stock phrases are shorter.
RUN_OF_WORDS = 15


def describe_overlap(predictions: Iterable[Prediction], cases: Mapping[int, Case]) -> list[str]:
    """A sentence naming the cases whose rationales repeat the expert's text verbatim; empty if none does."""
    found = sorted({one.case for one in predictions if _repeats(one, cases[one.case])})
    if not found:
        return []
    named = ", ".join(map(str, found[:5])) + (" …" if len(found) > 5 else "")
    return [f"{len(found)} rationales repeat {RUN_OF_WORDS} or more words of the withheld text (cases {named})"]


def _repeats(one: Prediction, case: Case) -> bool:
    written = _runs(_texts(one))
    if not written:
        return False
    reference = case.reference
    # Text that the model may see can be repeated.
    shown = _runs([case.question.history])
    withheld = [reference.findings, reference.discussion, *(image.caption for image in reference.images)]
    return not written.isdisjoint(_runs(withheld) - shown)


def _texts(one: Prediction) -> list[str]:
    steps = one.prediction_twi
    texts = [one.prediction_rationale]
    if steps is not None:
        texts += [steps.step2_integrated_summary, steps.step3_differential_reasoning]
        texts += steps.step1_per_image_findings or ()
    return [text for text in texts if text]


def _runs(texts: Iterable[str]) -> set[tuple[str, ...]]:
    """Every sequence of this many words, in lower case."""
    runs: set[tuple[str, ...]] = set()
    for text in texts:
        words = _WORDS.findall(text.lower())
        runs.update(zip(*(words[start:] for start in range(RUN_OF_WORDS)), strict=False))
    return runs


_MOST_TOLD = 5


class TracedReply(msgspec.Struct, frozen=True, kw_only=True):
    """One answered call: the digest of what was asked, and the reply as received."""

    asked: str
    reply: Reply
    cost_usd: float | None = None
    ended_at: str = ""


class SubmissionTrace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `trace` of one line; the first line of a file also has the run's manifest."""

    manifest: Manifest | None = None
    calls: tuple[TracedReply, ...] = ()


class SubmissionTraces(msgspec.Struct, frozen=True, kw_only=True):
    """The traces of a whole file; `manifest` is None if there are none."""

    manifest: Manifest | None
    calls: dict[str, TracedReply]

    @property
    def usage(self) -> UsageSummary:
        """Tokens, money and time of the traced calls, as counted by the submitter's provider."""
        return summarise_usage(
            CallUsage(
                input_tokens=call.reply.usage.input if call.reply.usage else None,
                output_tokens=call.reply.usage.output if call.reply.usage else None,
                reasoning_tokens=call.reply.usage.reasoning if call.reply.usage else None,
                cost_usd=call.cost_usd,
                latency_s=call.reply.latency_s,
                attempts=call.reply.attempts,
            )
            for call in self.calls.values()
        )


def read_traces(path: Path) -> SubmissionTraces:
    """The traces of a submission; unreadable ones count as missing."""
    manifest: Manifest | None = None
    calls: dict[str, TracedReply] = {}
    for line in read_jsonl(path):
        trail = _read_trail(line.value)
        manifest = manifest or trail.manifest
        calls |= {call.asked: call for call in trail.calls}
    return SubmissionTraces(manifest=manifest, calls=calls)


def _read_trail(row: Any) -> SubmissionTrace:
    try:
        return msgspec.convert(row.get("trace") or {}, SubmissionTrace)
    except (msgspec.ValidationError, AttributeError):
        return SubmissionTrace()


def check_traces(trails: SubmissionTraces, benchmark: Benchmark, predictions: Iterable[Prediction]) -> list[str]:
    """Reasons why the traces do not support the predictions; empty if they do. `benchmark` is the split."""
    manifest = trails.manifest
    if manifest is None:
        return ["the file has no manifest and no replies"]
    task = TASKS.get(manifest.task)
    if task is None:
        return [f"the task {manifest.task!r} is not known"]
    problems = run_to_end(_Replay(trails, manifest, task, benchmark).compare(predictions))
    more = len(problems) - _MOST_TOLD
    return problems[:_MOST_TOLD] + ([f"and {more} more"] if more > 0 else [])


class _Replay:
    """Replays cases through the task, with every call answered from the traces."""

    def __init__(self, trails: SubmissionTraces, manifest: Manifest, task: Task, benchmark: Benchmark) -> None:
        self._trails = trails
        self._manifest = manifest
        self._task = task
        self._benchmark = benchmark
        self._showing = Showing(manifest.condition, benchmark)

    async def compare(self, predictions: Iterable[Prediction]) -> list[str]:
        """Every prediction that does not follow from its traces."""
        problems = []
        for one in predictions:
            again = await self._predict(one.case, one.sample)
            if again.prediction != one.prediction:
                problems.append(f"case {one.case}: the replies give {again.prediction}, the file says {one.prediction}")
            elif one.state == "ok" and again.state != "ok":
                problems.append(f"case {one.case}: {again.detail}")
            await asyncio.sleep(0)
        return problems

    async def _predict(self, case_id: int, sample: int) -> Prediction:
        case = self._benchmark.case(case_id)
        shown, cues = self._showing.show(case)
        ask = CaseAsk(self, self._manifest.condition, case_id=case_id, sample=sample)
        outcome = await self._task.run(shown.question, cues, ask, self._manifest.condition)
        return make_prediction(case, sample, shown, outcome, ask.spent)

    async def call(self, prompt: Prompt, request: Request, case_id: int) -> tuple[Reply, CallCost]:
        """The traced reply to exactly this request."""
        found = self._trails.calls.get(request.key())
        if found is None:
            raise Unanswered("failed", f"no traced reply to the {prompt.kind} prompt of case {case_id}")
        return found.reply, CallCost(0, found.reply.usage, found.cost_usd, found.reply.latency_s)


class LoadedBenchmark(HeldSplit, frozen=True, kw_only=True):
    """A split whose files are available, read once, so that its submissions can be checked and scored."""

    fingerprint: str

    @classmethod
    def open(cls, data: Path, split: str = "test") -> "LoadedBenchmark":
        """Open a split and compute its fingerprint."""
        part = Benchmark.open(data)[split]
        passing = part.pass_prints()
        cases = {case.id: case for case in passing.cases}
        prints = passing.finish()
        return cls(split=part, cases=cases, fingerprint=prints.whole, text_fingerprint=prints.texts)


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a file: every problem or, if there is none, the scores and their provenance."""

    submission: SubmissionFile
    scores: Scores | None = None
    provenance: Provenance = "scored"
    doubts: tuple[str, ...] = ()
    trails: SubmissionTraces | None = None


def check_file(
    path: Path, held: LoadedBenchmark, *, name: str = "", tell: Callable[[QueueProgress], None] = lambda _: None
) -> CheckedFile:
    """Read a submission and, if it is valid, score it and check its traces; `tell` is called with the progress."""
    of = _count_lines(path)

    def tell_lines(lines: int, problems: int) -> None:
        tell(QueueProgress(done=lines, of=of, problems=problems))

    submission = read_submission(path, held.cases, tell=tell_lines)
    if submission.problems:
        return CheckedFile(submission=submission)
    tell(QueueProgress(stage="score", done=of, of=of))
    trails = read_traces(path)
    doubts = _doubt_trails(trails, held, submission)
    provenance: Provenance = "traced" if trails.manifest and not doubts else "scored"
    predictions = list(submission.predictions)
    # The traces' task, condition and usage are accepted only if they lead to the submitted letters.
    borne_out = trails if provenance == "traced" else None
    manifest = borne_out.manifest if borne_out else None
    material = ScoringInput(name or path.name, manifest, held.text_fingerprint, held.cases, predictions)
    return CheckedFile(
        submission=submission,
        scores=score(material, usage=borne_out.usage if borne_out else None),
        provenance=provenance,
        doubts=(*doubts, *describe_overlap(predictions, held.cases)),
        trails=trails if trails.manifest else None,
    )


def _count_lines(path: Path) -> int:
    with open_for_reading(path) as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def _doubt_trails(trails: SubmissionTraces, held: LoadedBenchmark, submission: SubmissionFile) -> list[str]:
    if trails.manifest is None:
        return []
    if trails.manifest.fingerprint != held.fingerprint:
        return ["the run was made on texts or images that differ from this benchmark's"]
    return check_traces(trails, held.split, submission.predictions)
