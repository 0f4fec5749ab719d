"""The traces of a submission: every reply by the digest of what was asked, and the run they belong to.

Traces are checked by replaying every case through its task: prompts, parameters and images are built from our own copy
of the benchmark, each must have the digest of a traced call, and its reply must lead to the letter submitted. So
nothing in the file is taken on trust except the replies themselves.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.core.jsonio import read_jsonl
from medthink.metrics.usage import CallUsage, UsageSummary, summarise_usage
from medthink.models.request import Reply, Request
from medthink.runs.asking import CaseAsk
from medthink.runs.loop import run_to_end
from medthink.runs.manifest import Manifest
from medthink.runs.prediction import Prediction, Spent, make_prediction
from medthink.runs.showing import Showing
from medthink.workflow.ask import Prompt, Unanswered
from medthink.workflow.tasks import TASKS, Task

_MOST_TOLD = 5


class TrailCall(msgspec.Struct, frozen=True, kw_only=True):
    """One answered call: the digest of what was asked, and the reply as received."""

    asked: str
    reply: Reply
    cost_usd: float | None = None
    ended_at: str = ""


class Trail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `trace` of one line; the first line of a file also carries the run's manifest."""

    manifest: Manifest | None = None
    calls: tuple[TrailCall, ...] = ()


class Trails(msgspec.Struct, frozen=True, kw_only=True):
    """The traces of a whole file; `manifest` is None where there are none."""

    manifest: Manifest | None
    calls: dict[str, TrailCall]

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


def read_trails(path: Path) -> Trails:
    """The traces of a submission; unreadable ones count as missing."""
    manifest: Manifest | None = None
    calls: dict[str, TrailCall] = {}
    for line in read_jsonl(path):
        trail = _read_trail(line.value)
        manifest = manifest or trail.manifest
        calls |= {call.asked: call for call in trail.calls}
    return Trails(manifest=manifest, calls=calls)


def _read_trail(row: Any) -> Trail:
    try:
        return msgspec.convert(row.get("trace") or {}, Trail)
    except (msgspec.ValidationError, AttributeError):
        return Trail()


def check_trails(trails: Trails, benchmark: Benchmark, predictions: Iterable[Prediction]) -> list[str]:
    """Why the traces do not support the predictions; empty if they do. `benchmark` is the split submitted to."""
    manifest = trails.manifest
    if manifest is None:
        return ["the file carries no manifest and no replies"]
    task = TASKS.get(manifest.task)
    if task is None:
        return [f"the task {manifest.task!r} is not known"]
    problems = run_to_end(_Replay(trails, manifest, task, benchmark).compare(predictions))
    more = len(problems) - _MOST_TOLD
    return problems[:_MOST_TOLD] + ([f"and {more} more"] if more > 0 else [])


class _Replay:
    """Replays cases through the task, with every call answered from the traces."""

    def __init__(self, trails: Trails, manifest: Manifest, task: Task, benchmark: Benchmark) -> None:
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

    async def call(self, prompt: Prompt, request: Request, case_id: int) -> tuple[Reply, Spent]:
        """The traced reply to exactly this request."""
        found = self._trails.calls.get(request.key())
        if found is None:
            raise Unanswered("failed", f"no traced reply to the {prompt.kind} prompt of case {case_id}")
        return found.reply, Spent(0, found.reply.usage, found.cost_usd, found.reply.latency_s)
