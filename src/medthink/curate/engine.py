"""Takes the cases through one stage: decisions in the order of the input, one line each, and counts that add up.

The input is never written to. The case file and the log are written completely or not at all; every finished model call
is in the ledger before that, so that a stage that was killed asks nothing twice.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any, NamedTuple

import msgspec

from medthink.cases.export import copy_images
from medthink.core.digest import digest_value
from medthink.core.errors import DataError, MedThinkError
from medthink.core.files import open_for_writing
from medthink.core.jsonio import encode_json
from medthink.curate.asking import StageAsk, open_stage_answerer
from medthink.curate.decision import (
    CALL_FAILED,
    NOT_ASKED,
    Decision,
    StageCounts,
    StageResult,
    Tally,
    Verdict,
    changes_between,
    drop,
    keep,
    leave_open,
)
from medthink.curate.draft import Draft, read_drafts
from medthink.curate.review import PersonsRuling, Rulings
from medthink.curate.stage import ModelSettings, Stage
from medthink.curate.work import WorkFolder
from medthink.models.errors import ModelError
from medthink.runs.answerers import refuse_unfit
from medthink.runs.asking import Deferred
from medthink.runs.budget import BudgetReached
from medthink.runs.calls import open_calls
from medthink.runs.ledger import Ledger
from medthink.runs.lock import hold
from medthink.runs.loop import run_to_end
from medthink.runs.progress import Tracker
from medthink.runs.spools import FOLDER
from medthink.workflow.ask import Unanswered

StageProgress = Callable[[], None]


class StageEnd(NamedTuple):
    """How a stage ended, and what stopped its calls early, if anything did."""

    counts: StageCounts
    stopped_by: MedThinkError | None


def run_stage(stage: Stage[Any], work: WorkFolder, rulings: Rulings, progress: StageProgress | None = None) -> StageEnd:
    """Survey, decide, write, finish."""
    work.path.mkdir(parents=True, exist_ok=True)
    with hold(work.path):
        stage.survey(stage.read)
        end = run_to_end(_decide_all(stage, work, rulings, progress or _ignore))
        stage.finish(lambda: _read_kept(work, stage.name, end.counts))
    return end._replace(stopped_by=end.stopped_by or stage.stopped_by)


def _read_kept(work: WorkFolder, stage: str, counts: StageCounts) -> Iterator[Draft]:
    return read_drafts(work.case_file(stage)) if counts.passed else iter(())


async def _decide_all(stage: Stage[Any], work: WorkFolder, rulings: Rulings, progress: StageProgress) -> StageEnd:
    """Decide on every case, with batches in pass after pass; each writes the files anew, and the last one counts."""
    ends: list[StageEnd] = []

    async with _open_ask(stage, work) as ask:

        async def make_pass() -> BudgetReached | None:
            stage.begin_pass()
            ends.append(await _make_pass(stage, work, rulings, progress, ask))
            stop = ends[-1].stopped_by
            return stop if isinstance(stop, BudgetReached) else None

        await (make_pass() if ask is None else ask.calls.work(make_pass))
    return ends[-1]


async def _make_pass(
    stage: Stage[Any], work: WorkFolder, rulings: Rulings, progress: StageProgress, ask: StageAsk | None
) -> StageEnd:
    tally, stops = Tally(), list[MedThinkError]()
    with open_for_writing(work.case_file(stage.name)) as cases, open_for_writing(work.decision_file(stage.name)) as log:
        async for draft, result in _results(stage, ask, rulings, stops):
            decision = _record(stage, draft, result)
            tally.add(decision)
            log.write(encode_json(msgspec.to_builtins(decision)) + b"\n")
            if result.draft is not None:
                if _is_from_elsewhere(stage):
                    copy_images(result.draft.case, work.cases)
                cases.write(encode_json(result.draft.row()) + b"\n")
            progress()
    return StageEnd(tally.counts(), stops[0] if stops else None)


def _is_from_elsewhere(stage: Stage[Any]) -> bool:
    source = stage.context.source
    return source is not None and source.parent.resolve() != stage.context.folder.resolve()


async def _results(
    stage: Stage[Any], ask: StageAsk | None, rulings: Rulings, stops: list[MedThinkError]
) -> AsyncIterator[tuple[Draft, StageResult]]:
    """Every draft with its result, in the order of the drafts, with a bounded number in progress."""
    ahead = 1 if ask is None else 2 * ask.desk.answerer.concurrency
    waiting: deque[tuple[Draft, asyncio.Task[StageResult]]] = deque()
    try:
        for draft in _once_each(stage.read()):
            waiting.append((draft, asyncio.create_task(_decide(stage, draft, ask, rulings, stops))))
            if len(waiting) >= ahead:
                first, task = waiting.popleft()
                yield first, await task
        while waiting:
            first, task = waiting.popleft()
            yield first, await task
    finally:
        for _, task in waiting:
            task.cancel()


async def _decide(
    stage: Stage[Any], draft: Draft, ask: StageAsk | None, rulings: Rulings, stops: list[MedThinkError]
) -> StageResult:
    """A person's ruling if there is one, else the stage's decision; a call without an answer leaves the case open."""
    ruling = rulings.find(stage.name, draft.id, _digest(draft))
    if ruling is not None:
        return _obey(stage, draft, ruling)
    try:
        result = await stage.decide(draft, ask)
    except Deferred:
        return leave_open(NOT_ASKED, by=ask.by if ask else "", detail="its call waits in a batch")
    except Unanswered as stop:
        return leave_open(CALL_FAILED, by=ask.by if ask else "", detail=f"{stop.state}: {stop.detail}")
    except (BudgetReached, ModelError) as stop:
        stops.append(stop)
        return leave_open(NOT_ASKED, by=ask.by if ask else "", detail=stop.problem)
    return result


def _obey(stage: Stage[Any], draft: Draft, ruling: PersonsRuling) -> StageResult:
    by = "person"
    if ruling.verdict == "out":
        return drop("ruled-out", by=by, detail=ruling.note)
    return keep(stage.agree(draft, ruling.value), reason="ruled-in", by=by, detail=ruling.note)


def _record(stage: Stage[Any], draft: Draft, result: StageResult) -> Decision:
    unfounded = [quote for quote in result.evidence if not quote.is_in(draft)]
    assert not unfounded, f"{stage.name}, case {draft.id}: the quoted evidence is not in the case: {unfounded}"
    changed = result.draft is not None and result.draft != draft
    changes = changes_between(draft, result.draft) if changed and result.draft and stage.logs_changes else ()
    return Decision(
        case=draft.id,
        stage=stage.name,
        verdict=_verdict(result, changed=changed),
        reason=result.reason,
        by=result.by,
        detail=result.detail,
        proposal=result.proposal,
        evidence=result.evidence,
        changes=changes,
        seen=_digest(draft),
    )


def _verdict(result: StageResult, *, changed: bool) -> Verdict:
    if result.is_undecided:
        return "undecided"
    if result.draft is None:
        return "out"
    return "changed" if changed else "in"


def _digest(draft: Draft) -> str:
    return digest_value(draft.row())[:16]


def _once_each(drafts: Iterator[Draft]) -> Iterator[Draft]:
    seen: set[int] = set()
    for draft in drafts:
        if draft.id in seen:
            raise DataError(f"two cases have the number {draft.id}", remedy="give every case its own number")
        seen.add(draft.id)
        yield draft


@asynccontextmanager
async def _open_ask(stage: Stage[Any], work: WorkFolder) -> AsyncIterator[StageAsk | None]:
    """Open the model named by the settings, or None if they name none."""
    settings = stage.settings
    if not isinstance(settings, ModelSettings) or not settings.model:
        yield None
        return
    from medthink.models.limits import Pace
    from medthink.models.transport import Transport

    terms, transport = settings.terms(stage.context.plan_folder), Transport(pace=Pace(concurrency=settings.concurrency))
    example, spools = settings.example_request(), work.path / FOLDER
    answerer = open_stage_answerer(settings.model, terms, transport)
    try:
        refuse_unfit(answerer, example, max_usd=terms.max_usd)
        await answerer.check()
        with closing(Ledger(work.ledger, places=answerer.concurrency)) as ledger:
            opened = open_calls(
                [answerer], ledger, terms, spools=spools, tracker=Tracker(), transport=transport, is_checked=True
            )
            async with opened as calls:
                yield StageAsk(calls, example)
    finally:
        await answerer.close()


def _ignore() -> None:
    """Ignore progress."""
