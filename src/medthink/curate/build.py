"""A build: the stages of a plan one after the other, each on the cases that passed the one before.

A stage with unchanged settings, input, human decisions, prompts and version is not run again, unless some of its calls
failed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from medthink.cases.case import Image
from medthink.cases.files.export import copy_as_shown, copy_image, copy_images
from medthink.core.digest import digest_file, digest_value
from medthink.core.errors import DataError, Declined, MedThinkError
from medthink.core.files import claim_folder, open_for_writing, write_atomic
from medthink.core.jsonio import encode_json
from medthink.core.tables import csv_text
from medthink.curate.ask import CURATE_LEDGER, StageModel, open_stage_answerer
from medthink.curate.decision import (
    CALL_FAILED,
    NOT_ASKED,
    Decision,
    StageCounts,
    StageResult,
    Tally,
    Verdict,
    changes_between,
    drop_case,
    hold_case,
    read_decisions,
)
from medthink.curate.draft import Draft, look_at, read_drafts
from medthink.curate.plan import SUMMARY_FILE, CurationPlan, StageSummary, WorkFolder
from medthink.curate.review import OddCell, read_rulings, write_review
from medthink.curate.rulings import CaseRulings, Held, RuledOut, Rulings, StageErrors
from medthink.curate.settings import ModelSettings, StageSettings
from medthink.curate.sources.release import NO_RELEASE, Release, ReleaseChange, list_changes
from medthink.curate.stage import Stage, StageContext, stage_type
from medthink.models.request import ModelError
from medthink.runs.batches.queue import FOLDER
from medthink.runs.calls.answerers import refuse_unfit
from medthink.runs.calls.asking import Deferred
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.calls.opening import open_calls
from medthink.runs.calls.rehearsal import CallEstimate, Rehearsal, open_rehearsal, sum_estimates, without_limits
from medthink.runs.dry_run import estimate
from medthink.runs.engine import run_to_end
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.runs.progress import ProgressTracker
from medthink.workflow.ask import Unanswered

StageProgress = Callable[[], None]


class StageRunResult(NamedTuple):
    """The result of a stage, and what stopped its calls early, if anything."""

    counts: StageCounts
    stopped_by: MedThinkError | None


def run_stage(
    stage: Stage[Any], work: WorkFolder, rulings: Rulings, progress: StageProgress | None = None
) -> StageRunResult:
    """Survey, decide, write, finish."""
    claim_folder(work.path, SUMMARY_FILE, holds_more=True)
    with lock_run(work.path):
        stage.survey(stage.read)
        end = run_to_end(_decide_all(stage, work, rulings, progress or _ignore))
        stage.finish(lambda: _read_kept(work, stage.name, end.counts))
    return end._replace(stopped_by=end.stopped_by or stage.stopped_by)


def _read_kept(work: WorkFolder, stage: str, counts: StageCounts) -> Iterator[Draft]:
    return read_drafts(work.case_file(stage)) if counts.passed else iter(())


async def _decide_all(stage: Stage[Any], work: WorkFolder, rulings: Rulings, progress: StageProgress) -> StageRunResult:
    """Decide on every case, with batches in pass after pass; each writes the files again, and the last one counts."""
    ends: list[StageRunResult] = []

    async with _open_ask(stage, work) as ask:

        async def make_pass() -> BudgetReached | None:
            stage.begin_pass()
            ends.append(await _make_pass(stage, work, rulings, progress, ask))
            stop = ends[-1].stopped_by
            return stop if isinstance(stop, BudgetReached) else None

        await (make_pass() if ask is None else ask.calls.work(make_pass))
    return ends[-1]


async def _make_pass(
    stage: Stage[Any], work: WorkFolder, rulings: Rulings, progress: StageProgress, ask: StageModel | None
) -> StageRunResult:
    tally, stops = Tally(), list[MedThinkError]()
    with open_for_writing(work.case_file(stage.name)) as cases, open_for_writing(work.decision_file(stage.name)) as log:
        async for draft, result in _results(stage, ask, rulings, stops):
            decision = _record(stage, draft, result)
            tally.add(decision)
            log.write(encode_json(msgspec.to_builtins(decision)) + b"\n")
            if result.draft is not None:
                if _is_from_elsewhere(stage):
                    copy_images(result.draft.case, work.cases, _copy_shown)
                cases.write(encode_json(result.draft.row()) + b"\n")
            progress()
    return StageRunResult(tally.counts(), stops[0] if stops else None)


def _copy_shown(image: Image, folder: Path) -> None:
    """The image as it is shown, or unchanged if it cannot be decoded: the export's check reports damaged ones."""
    try:
        copy_as_shown(image, folder)
    except DataError:
        copy_image(image, folder)


def _is_from_elsewhere(stage: Stage[Any]) -> bool:
    source = stage.context.source
    return source is not None and source.parent.resolve() != stage.context.folder.resolve()


async def _results(
    stage: Stage[Any], ask: StageModel | None, rulings: Rulings, stops: list[MedThinkError]
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
    stage: Stage[Any], draft: Draft, ask: StageModel | None, rulings: Rulings, stops: list[MedThinkError]
) -> StageResult:
    """The stage's decision, or its first question that no person has answered."""
    answers = rulings.of_case(stage.name, draft.id, _digest(stage, draft))
    try:
        result = await _decide_or_hold(stage, draft, ask, answers, stops)
    except Held as held:
        return held.result
    except RuledOut as out:
        return drop_case("ruled-out", by="person", detail=out.note)
    if not answers.used or result.draft is None:
        return result
    notes = "; ".join(answer.note for answer in answers.used if answer.note)
    return msgspec.structs.replace(result, reason="ruled-in", by="person", detail=notes)


async def _decide_or_hold(
    stage: Stage[Any], draft: Draft, ask: StageModel | None, answers: CaseRulings, stops: list[MedThinkError]
) -> StageResult:
    """Where a call has no answer, a person may let the stage decide without the model."""
    by = ask.by if ask else ""
    try:
        return await stage.decide(draft, ask, answers)
    except Deferred:
        question = hold_case(NOT_ASKED, by=by, detail="its call waits in a batch")
    except Unanswered as stop:
        question = hold_case(CALL_FAILED, by=by, detail=f"{stop.state}: {stop.detail}")
    except (BudgetReached, ModelError) as stop:
        stops.append(stop)
        question = hold_case(NOT_ASKED, by=by, detail=stop.problem)
    answers.settle(question)
    return await stage.decide(draft, None, answers)


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
        seen=_digest(stage, draft),
        question=result.question,
        odd=result.odd,
        remedy=result.remedy,
        source_id=draft.notes.source_id,
    )


def _verdict(result: StageResult, *, changed: bool) -> Verdict:
    if result.is_undecided:
        return "undecided"
    if result.draft is None:
        return "out"
    return "changed" if changed else "in"


def _digest(stage: Stage[Any], draft: Draft) -> str:
    return digest_value(look_at(draft, stage.looks_at))[:16]


def _once_each(drafts: Iterator[Draft]) -> Iterator[Draft]:
    seen: set[int] = set()
    for draft in drafts:
        if draft.id in seen:
            raise DataError(f"two cases have the number {draft.id}", remedy="give every case its own number")
        seen.add(draft.id)
        yield draft


@asynccontextmanager
async def _open_ask(
    stage: Stage[Any], work: WorkFolder, rehearsal: Rehearsal | None = None
) -> AsyncIterator[StageModel | None]:
    """Open the model named by the settings, or None if they name none; in a rehearsal it is not asked."""
    settings = stage.settings
    if not isinstance(settings, ModelSettings) or not settings.model:
        yield None
        return
    terms, transport = settings.terms(stage.context.plan_folder), settings.transport()
    example, spools = settings.example_request(), work.path / FOLDER
    answerer = open_stage_answerer(settings.model, terms, transport, rehearsal)
    if rehearsal is not None:
        terms = without_limits(terms)
    try:
        refuse_unfit(answerer, example, max_usd=terms.max_usd)
        if terms.preflight:
            await answerer.check()
        with closing(Ledger(work.ledger, places=answerer.concurrency)) as ledger:
            opened = open_calls(
                [answerer],
                ledger,
                terms,
                spools=spools,
                tracker=ProgressTracker(),
                transport=transport,
                is_checked=True,
            )
            async with opened as calls:
                yield StageModel(calls, example)
    finally:
        await answerer.close()


def rehearse_stage(stage: Stage[Any], work: WorkFolder, rulings: Rulings) -> CallEstimate:
    """Count the calls that the stage would make, and estimate their cost; nothing is sent or written."""
    if probes := list(stage.probes()):
        return sum_estimates(estimate(spec) for spec in probes)
    with open_rehearsal(work.path, CURATE_LEDGER) as rehearsal:
        stage.survey(stage.read)
        run_to_end(_rehearse_all(stage, WorkFolder(rehearsal.folder), rulings, rehearsal))
        return rehearsal.tally.total


async def _rehearse_all(stage: Stage[Any], work: WorkFolder, rulings: Rulings, rehearsal: Rehearsal) -> None:
    async with _open_ask(stage, work, rehearsal) as ask:
        stage.begin_pass()
        if ask is not None:
            async for _ in _results(stage, ask, rulings, []):
                pass


def _ignore() -> None:
    """Ignore progress."""


# Called with the stage's name when it begins; returns what is called for every case.
Watch = Callable[[str], StageProgress]


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a build: its stages, cases waiting for review, the results of reviews, what stopped it.

    `odd` are the cells of the review sheet that could not be used, `changes` what is not as in the release that the
    build follows, None if it follows none or did not get to its end.
    """

    work: Path
    stages: tuple[StageSummary, ...]
    waiting: int
    errors: tuple[StageErrors, ...]
    odd: tuple[OddCell, ...]
    changes: tuple[ReleaseChange, ...] | None
    stopped_by: MedThinkError | None

    @property
    def unfinished(self) -> int:
        """The number of cases left open because a call failed or was not made."""
        return sum(one.counts.unfinished for one in self.stages)


def build(plan: CurationPlan, watch: Watch | None = None) -> BuildResult:
    """Run a plan, or continue where it stopped."""
    work = WorkFolder(plan.work)
    release = _open_release(plan)
    rulings = read_rulings(work.path)
    before, done = work.read_summaries(), dict[str, StageSummary]()
    source: Path | None = None
    stopped_by: MedThinkError | None = None
    for name, settings in plan.stages.items():
        stage = open_stage(
            name, settings, work=work, source=source, plan_folder=plan.folder, seed=plan.seed, release=release
        )
        summary, stopped_by = run_stage_once(stage, work, rulings, before.get(name), watch)
        done[name] = summary
        work.write_summaries(done)
        source = work.case_file(name)
        if stopped_by is None and summary.counts.passed == 0:
            remedy = (
                f"{work.decision_file(name)} has the reasons; correct the source, change the settings in [{name}]"
                f" of the plan, or answer in the columns ruling and value of {work.review}"
            )
            stopped_by = Declined(f"no case is left after {name}", remedy=remedy)
        if stopped_by is not None:
            break
    sheet = write_review(work.path, _logs(work, done), sample=plan.review_sample, seed=plan.seed)
    is_through = len(done) == len(plan.stages) and all(one.counts.passed for one in done.values())
    changes = _write_changes(work, release if is_through else NO_RELEASE, done)
    return BuildResult(
        work=plan.work,
        stages=tuple(done.values()),
        waiting=sheet.waiting,
        errors=tuple(rulings.errors()),
        odd=sheet.odd,
        changes=changes,
        stopped_by=stopped_by,
    )


def _open_release(plan: CurationPlan) -> Release:
    """The release that the plan follows; one in the work folder would be written anew by the build itself."""
    if plan.since is None:
        return NO_RELEASE
    if plan.since.resolve().is_relative_to(plan.work.resolve()):
        problem = "the release is in the work folder, which the build writes anew"
        raise DataError(problem, file=plan.since, remedy="copy the release elsewhere")
    return Release(plan.since)


def _logs(work: WorkFolder, done: dict[str, StageSummary]) -> dict[str, Iterator[Decision]]:
    return {name: read_decisions(work.decision_file(name)) for name in done if done[name].counts.seen}


def _write_changes(
    work: WorkFolder, release: Release, done: dict[str, StageSummary]
) -> tuple[ReleaseChange, ...] | None:
    """What is not as in the release, which is also written as a table; None without a release."""
    work.changes.unlink(missing_ok=True)
    if release.path is None:
        return None
    drafts = read_drafts(work.case_file(list(done)[-1]))
    changes = tuple(list_changes(release, drafts, _logs(work, done)))
    rows = (one._asdict() for one in changes)
    write_atomic(work.changes, [csv_text(ReleaseChange._fields, rows).encode("utf-8-sig")])
    return changes


def open_stage(
    name: str,
    settings: StageSettings,
    *,
    work: WorkFolder,
    source: Path | None,
    plan_folder: Path,
    seed: int,
    release: Release = NO_RELEASE,
) -> Stage[Any]:
    """A stage ready to run in a work folder."""
    context = StageContext(
        work=work.path, folder=work.cases, plan_folder=plan_folder, seed=seed, source=source, release=release
    )
    return stage_type(name)(settings, context)


def run_stage_once(
    stage: Stage[Any], work: WorkFolder, rulings: Rulings, before: StageSummary | None, watch: Watch | None
) -> tuple[StageSummary, MedThinkError | None]:
    """Run a stage, unless it was already run on the same input and nothing is unfinished."""
    key = _key(stage, rulings)
    is_done = before is not None and not before.counts.unfinished and not before.stopped_by
    if before is not None and is_done and before.key == key and _is_whole(stage, work):
        return before, None
    end = run_stage(stage, work, rulings, watch(stage.name) if watch else None)
    summary = StageSummary(
        stage=stage.name,
        key=key,
        settings=msgspec.to_builtins(stage.settings),
        counts=end.counts,
        not_covered=stage.not_covered(),
        report=stage.report(),
        stopped_by="" if end.stopped_by is None else end.stopped_by.problem,
    )
    return summary, end.stopped_by


def _is_whole(stage: Stage[Any], work: WorkFolder) -> bool:
    files = (work.case_file(stage.name), work.decision_file(stage.name))
    return all(file.is_file() for file in files) and stage.is_written()


def _key(stage: Stage[Any], rulings: Rulings) -> str:
    source = stage.context.source
    return digest_value(
        {
            "stage": [stage.name, stage.version],
            "settings": msgspec.to_builtins(stage.settings),
            "seed": stage.context.seed,
            "source": None if source is None else digest_file(source),
            "rulings": rulings.of_stage(stage.name),
            "inputs": stage.inputs(),
            "prompts": stage.prompts(),
            "release": stage.context.release.fingerprint if stage.follows_release else "",
        }
    )
