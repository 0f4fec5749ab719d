"""One session of judging: segment the texts, ask the judges for missing verdicts, write the results."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from msgspec.structs import replace

from medthink.cases.slices import slice_cases
from medthink.core.errors import UsageError
from medthink.judge.asking import (
    JUDGE_LEDGER,
    AskingSettings,
    Judge,
    Judges,
    JudgesResult,
    ask_verdicts,
    blank_judgement,
    find_stop,
    open_judges,
)
from medthink.judge.decisive import DecisiveList, read_decisive, write_decisive
from medthink.judge.judged import (
    JudgedScores,
    load_judged,
    merge_judgements,
    read_judgements,
    score_judged,
    write_judgements,
)
from medthink.judge.judgement import Judgement, Sight, Unjudged, gather_evidence, model_identity
from medthink.judge.kinds import KINDS
from medthink.judge.segmentation import DecisiveListMaker, Segmenter
from medthink.judge.units import SENTENCES, UnitKey, UnitSet, UnitSource, read_units, write_units
from medthink.models.request import Effort
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.calls.rehearsal import CallEstimate, Rehearsal, open_rehearsal
from medthink.runs.engine import run_cases, run_to_end
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.queries import ImageTokenWarnings
from medthink.runs.manifest import Manifest
from medthink.runs.progress import ProgressTracker, RunListener
from medthink.runs.run import Run, RunOrPath, path_of
from medthink.workflow.forms import RULES
from medthink.workflow.view import Showing

if TYPE_CHECKING:
    from medthink.models.transport import Transport


class JudgeSpec(AskingSettings, frozen=True, kw_only=True):
    """The parameters of a session; the command line's flags map one to one onto these fields.

    `what` is by default what the run's task gives; `splitter` is the model that segments rationales into steps, by
    default the first judge, or "sentences"; `against` the runs to compare with; `benchmark` the path of the benchmark
    if it is not the one the run names.
    """

    run: Path
    what: tuple[str, ...] | None = None
    repeats: int = 1
    splitter: str | None = None
    allow_self: bool = False
    retry_unjudged: bool = False
    against: tuple[Path, ...] = ()
    benchmark: Path | None = None


class JudgeSession(JudgesResult, frozen=True, kw_only=True):
    """The result of a session: the run and all its judgements.

    `image_doubts` counts replies with too few input tokens for their images: the server may be ignoring images.
    """

    run: Run
    judgements: tuple[Judgement, ...]
    image_doubts: ImageTokenWarnings


def judge_run(
    order: JudgeSpec, *, transport: "Transport | None" = None, listener: RunListener | None = None
) -> JudgeSession:
    """Judge a run, or continue where an earlier session stopped; nothing is judged twice."""
    return run_to_end(_Worker(order, transport, listener).work())


def rehearse_judging(order: JudgeSpec, *, transport: "Transport | None" = None) -> CallEstimate:
    """Count the calls that the session would make, and estimate their cost; nothing is sent, and no key is needed."""
    with open_rehearsal(order.run, JUDGE_LEDGER) as rehearsal:
        run_to_end(_Worker(order, transport, None, rehearsal).work())
        return rehearsal.tally.total


class _Worker:
    """The state of one session while it works."""

    def __init__(
        self,
        order: JudgeSpec,
        transport: "Transport | None",
        listener: RunListener | None,
        rehearsal: Rehearsal | None = None,
    ) -> None:
        self._order = order
        self._rehearsal = rehearsal
        # Where it writes; all is read from the run.
        self._out = order.run if rehearsal is None else rehearsal.folder
        self._transport = transport
        self._tracker = ProgressTracker(listener)
        self._tracker.counts.unit = "judgements"
        self._run = Run(order.run)
        _refuse_swapped(self._run.manifest)
        self._benchmark, self._changed = self._run.split_and_changes(order.benchmark)
        self._showing = Showing(self._run.manifest.condition, self._benchmark)
        self._made: list[Judgement] = []
        self._known = {one.order: one for one in read_judgements(order.run)}
        refuse_self(order, self._run.manifest)
        self._whats = order.what or _kinds_of(self._run.manifest.task, is_pairwise=bool(order.against))
        self._others = open_others(order, self._run.manifest, self._whats)

    async def work(self) -> JudgeSession:
        """Run the session under the run's lock."""
        order, manifest = self._order, self._run.manifest
        reported = manifest.progress.reported_models if manifest.progress else ()
        barred = frozenset() if order.allow_self else frozenset(map(model_identity, reported))
        splitters = [order.splitter] if order.splitter not in (None, SENTENCES, RULES) else []
        bench = open_judges(
            self._out,
            order,
            specs=[*order.judges, *splitters],
            tracker=self._tracker,
            transport=self._transport,
            condition=manifest.condition,
            barred=barred - {""},
            rehearsal=self._rehearsal,
        )
        async with bench as opened:
            return await opened.work(self._judge_all)

    async def _judge_all(self, bench: Judges) -> JudgeSession:
        hearings = bench.hearings
        self._made.clear()
        self._tracker.begin_pass()
        lists, no_list, short = await self._list_decisive(hearings)
        sources = self._read_sources(lists)
        sets, stop = await self._cut(hearings, sources)
        if not bench.calls.is_waiting:
            sets |= {key: no_list[key[0]] for key in sources if KINDS[key[2]].uses_decisive and key[0] in no_list}
        self._tell_totals(sets)
        # A judge that cannot continue (a wrong key) does not stop the others: they finish, then its error is reported.
        seated = [hearing for spec, hearing in hearings.items() if spec in self._order.judges]
        ends = await asyncio.gather(
            *(self._judge_by(hearing, sets, sources, bench.calls.ledger) for hearing in seated), return_exceptions=True
        )
        judgements = merge_judgements(read_judgements(self._order.run), self._made)
        write_judgements(self._out, judgements)
        return JudgeSession(
            run=self._run,
            judgements=tuple(judgements),
            stopped_by=find_stop([short, stop, *ends]),
            calls_made=bench.calls.made,
            image_doubts=bench.calls.ledger.totals().image_warnings,
            warnings=tuple(self._tracker.counts.warnings),
        )

    def _tell_totals(self, sets: dict[UnitKey, UnitSet | Unjudged]) -> None:
        """Count the judgements still to be made, and the calls they are expected to need."""
        counts, each = self._tracker.counts, self._order.repeats * len(self._order.judges)
        counts.predictions = len(sets) * each
        counts.calls = counts.finished + each * sum(
            isinstance(one, UnitSet) and one.state == "ok" for one in sets.values()
        )

    async def _list_decisive(
        self, hearings: dict[str, Judge]
    ) -> tuple[dict[int, DecisiveList], dict[int, Unjudged], BudgetReached | None]:
        """The lists of decisive findings, the reasons why some cases have none yet, and what stopped the listing."""
        if not any(KINDS[what].uses_decisive for what in self._whats):
            return {}, {}, None
        kept = read_decisive(self._order.run)
        cases = [self._benchmark.case(number) for number in sorted({one.case for one in self._run.predictions()})]
        made, stop = await DecisiveListMaker(hearings[self._order.judges[0]], kept).make(cases)
        lists = {case: one for case, one in made.items() if isinstance(one, DecisiveList)}
        write_decisive(self._out, kept | lists)
        failed = {case: one for case, one in made.items() if isinstance(one, Unjudged)}
        missing = Unjudged("unsplit", "no list of decisive findings exists for this case yet")
        return lists, {one.id: failed.get(one.id, missing) for one in cases if one.id not in lists}, stop

    def _read_sources(self, lists: dict[int, DecisiveList]) -> dict[UnitKey, UnitSource]:
        run = self._run.manifest.digest()
        found = [
            KINDS[what].source(one, self._benchmark.case(one.case), run, lists.get(one.case))
            for one in self._run.predictions()
            for what in self._whats
            if not KINDS[what].is_pairwise
        ]
        found += [source for what in self._whats if KINDS[what].is_pairwise for source in self._pair_up(what, run)]
        if not any(source.parts for source in found):
            raise _nothing_to_judge(self._whats)
        return {source.key: source for source in found}

    def _pair_up(self, what: str, run: str) -> Iterator[UnitSource]:
        """Each prediction of this run with those of every other run on the same case."""
        for other in self._others:
            theirs = {one.case: one for one in other.predictions() if one.sample == 0}
            name = other.manifest.digest()
            against = f"{other.manifest.model} · {name[:8]}"
            for own in self._run.predictions():
                if own.sample == 0 and own.case in theirs:
                    yield from KINDS[what].pair_sources(own, theirs[own.case], run=run, other_run=name, against=against)

    async def _cut(
        self, hearings: dict[str, Judge], sources: dict[UnitKey, UnitSource]
    ) -> tuple[dict[UnitKey, UnitSet | Unjudged], BudgetReached | None]:
        kept = read_units(self._order.run)
        cutter = Segmenter(hearings, kept, asked=self._order.splitter, default=self._order.judges[0])
        sets, stop = await cutter.cut(sources.values())
        write_units(self._out, kept | {key: one for key, one in sets.items() if isinstance(one, UnitSet)})
        return sets, stop

    async def _judge_by(
        self,
        hearing: Judge,
        sets: dict[UnitKey, UnitSet | Unjudged],
        sources: dict[UnitKey, UnitSource],
        ledger: Ledger,
    ) -> BudgetReached | None:
        async def judge(work: tuple[UnitKey, int]) -> None:
            key, repeat = work
            judgement = await self._judge(hearing, sources[key], sets[key], repeat=repeat, ledger=ledger)
            self._made.append(judgement)
            self._tracker.counts.states[judgement.state] += 1

        work = ((key, repeat) for key in sets for repeat in range(self._order.repeats))
        return await run_cases(work, judge, workers=hearing.desk.answerer.concurrency)

    async def _judge(
        self, hearing: Judge, source: UnitSource, units: UnitSet | Unjudged, *, repeat: int, ledger: Ledger
    ) -> Judgement:
        blank = blank_judgement(source.key, hearing.desk.answerer.spec, self._order, repeat=repeat)
        if isinstance(units, Unjudged):
            return replace(blank, why=units.kind, detail=units.detail)
        if units.state == "absent":
            return replace(blank, state="absent", detail="nothing to judge")
        if units.state == "too_many":
            return replace(blank, why="too_many", detail=units.detail)
        if blank.case in self._changed and "images" in blank.setting.sees:
            return replace(blank, why="failed", detail="its images have changed since the run was made")
        case = self._benchmark.case(blank.case)
        evidence = gather_evidence(case, self._showing.show(case)[0], blank.setting.sees)
        blank = replace(blank, round=self._round_of(blank))
        return await ask_verdicts(hearing, blank, units, evidence=evidence, source=source, ledger=ledger)

    def _round_of(self, blank: Judgement) -> int:
        """The round a judgement was made in; the next one, if it has no verdict and is to be tried again."""
        known = self._known.get(blank.order)
        if known is None:
            return 0
        is_due = self._order.retry_unjudged and known.state == "unjudged" and known.tries > 0
        return known.round + 1 if is_due else known.round


def refuse_self(order: JudgeSpec, manifest: Manifest) -> None:
    """Raise UsageError if a judge or the splitter is the judged model, however its name is spelled."""
    reported = manifest.progress.reported_models if manifest.progress else ()
    judged = {model_identity(name) for name in (manifest.model, *reported)} - {""}
    for spec in (*order.judges, *([order.splitter] if order.splitter else [])):
        if model_identity(spec) in judged and not order.allow_self:
            raise UsageError(
                f"{spec} would judge itself: the run is by {manifest.model}",
                remedy="choose another judge, or add --allow-self",
            )


def _kinds_of(task: str, *, is_pairwise: bool) -> tuple[str, ...]:
    if is_pairwise:
        return tuple(name for name, kind in KINDS.items() if kind.is_pairwise)
    return tuple(name for name, kind in KINDS.items() if task in kind.tasks)


def open_others(order: JudgeSpec, manifest: Manifest, whats: tuple[str, ...]) -> tuple[Run, ...]:
    """The runs to compare with: on the same benchmark, and not by a judge's own model."""
    pairwise = [what for what in whats if KINDS[what].is_pairwise]
    if bool(pairwise) != bool(order.against):
        raise UsageError("a preference needs two runs", remedy="give --kinds preference and --against RUN together")
    others = tuple(Run.open(path) for path in order.against)
    for other in others:
        refuse_self(order, other.manifest)
        if other.manifest.text_fingerprint != manifest.text_fingerprint:
            raise UsageError(f"{other.path} is a run on another benchmark", remedy="compare runs on the same benchmark")
        if other.manifest.digest() == manifest.digest():
            raise UsageError(f"{other.path} is the same run", remedy="name another one with --against")
    return others


def _refuse_swapped(manifest: Manifest) -> None:
    if manifest.condition.swap_images:
        raise UsageError(
            "the run was shown images of other cases, so there is no reference to judge it against", remedy="none"
        )


def _nothing_to_judge(whats: tuple[str, ...]) -> UsageError:
    return UsageError(
        f"the run has no {' or '.join(whats)} to judge" if whats else "this task produces nothing to judge",
        remedy=f"choose with --kinds what its task produces: {', '.join(KINDS)}",
    )


class JudgeOptions(TypedDict, total=False):
    """The settings of the judges: the fields of a `JudgeSpec`."""

    what: tuple[str, ...] | None
    sees: tuple[Sight, ...]
    repeats: int
    splitter: str | None
    allow_self: bool
    retry_unjudged: bool
    against: tuple[Path, ...]
    effort: Effort | None
    temperature: float | None
    max_tokens: int | None
    use_schema: bool
    benchmark: Path | None
    base_urls: tuple[str, ...]
    prices: Path | None
    price: str | None
    max_usd: float | None
    max_calls: int | None
    preflight: bool
    batch: bool
    wait: bool
    cancel_batches: bool
    forget_batches: tuple[str, ...]


def judge_and_score(
    run: RunOrPath,
    judges: str | Sequence[str],
    *,
    transport: "Transport | None" = None,
    **options: Unpack[JudgeOptions],
) -> JudgedScores:
    """Judge a run, or continue where an earlier session stopped, and score all of its judgements.

    If `max_usd` or `max_calls` stopped the judges, the remaining items count as unjudged.
    """
    names = (judges,) if isinstance(judges, str) else tuple(judges)
    order = JudgeSpec(run=path_of(run), judges=names, **options)
    session = judge_run(order, transport=transport)
    cases = session.run.cases(order.benchmark)
    return score_judged(load_judged(order.run, cases), slice_cases(cases.values()))
