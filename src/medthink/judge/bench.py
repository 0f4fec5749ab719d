"""All judges of a session, opened on one ledger, one budget and one limit of concurrent calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from medthink.core.errors import UsageError
from medthink.judge.asking import Hearing, example_request
from medthink.judge.evidence import Evidence
from medthink.judge.judgement import Judgement
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import prompt_version, verdict_prompt
from medthink.judge.terms import JudgeTerms
from medthink.judge.units import Source, UnitKey, UnitSet
from medthink.judge.verdicts import Unjudged
from medthink.runs.answerers import Answerer, ModelAnswerer, refuse_unfit
from medthink.runs.asking import Desk
from medthink.runs.batching import BatchDesk, take_in_batches, work_by_batches
from medthink.runs.budget import Budget, BudgetReached
from medthink.runs.forms import open_form_answerer
from medthink.runs.jobs import Batch, read_batches
from medthink.runs.ledger import Ledger
from medthink.runs.lock import hold
from medthink.runs.office import BatchOffice
from medthink.runs.opening import open_model_answerer
from medthink.runs.progress import Tracker
from medthink.workflow.condition import Condition
from medthink.workflow.forms import RULES, FormPrompt

if TYPE_CHECKING:
    from medthink.models.transport import Transport

JUDGE_LEDGER = "judge.sqlite"
BATCHES = "judge-batches"


class BenchSession(msgspec.Struct, frozen=True, kw_only=True):
    """How a session of judges ended: the calls made, and what stopped it early, if anything.

    `warnings` are what a person should know but did not stop it. `jobs` are the batches its calls are waiting in.
    """

    calls_made: int
    stopped_by: BudgetReached | None
    warnings: tuple[str, ...] = ()
    jobs: tuple[Batch, ...] = ()


Ended = TypeVar("Ended", bound=BenchSession)


def find_stop(ends: Iterable[BudgetReached | BaseException | None]) -> BudgetReached | None:
    """The limit that stopped one of the judges, if any did; an error that ended one is raised."""
    listed = list(ends)
    for end in listed:
        if isinstance(end, BaseException) and not isinstance(end, BudgetReached):
            raise end
    return next((end for end in listed if isinstance(end, BudgetReached)), None)


class Bench(NamedTuple):
    """The judges by spec, ready to be asked, and where their calls are recorded."""

    hearings: dict[str, Hearing]
    ledger: Ledger
    offices: list[BatchOffice]
    is_patient: bool

    @property
    def calls_made(self) -> int:
        """How many calls were made in this session."""
        return sum(hearing.desk.made for hearing in self.hearings.values())

    @property
    def is_waiting(self) -> bool:
        """Whether calls are waiting in a batch; what depends on them is left for a later pass."""
        return any(hearing.desk.waiting for hearing in self.hearings.values())

    @property
    def jobs(self) -> tuple[Batch, ...]:
        """The batches that have not ended."""
        return tuple(one for one in read_batches(self.ledger.connection) if one.state != "ended")

    async def work(self, ask_all: "Callable[[Bench], Awaitable[Ended]]") -> "Ended":
        """Ask everything: once, or with batches, pass after pass until nothing is left to ask; the last pass counts."""
        sessions: list[Ended] = []

        async def make_pass() -> BudgetReached | None:
            sessions.append(await ask_all(self))
            return sessions[-1].stopped_by

        if self.offices:
            await work_by_batches(self.offices, make_pass, is_patient=self.is_patient)
        else:
            await make_pass()
        # Calls queued during a pass are sent when it ends.
        return replace(sessions[-1], jobs=self.jobs)


@asynccontextmanager
async def open_bench(
    folder: Path,
    terms: JudgeTerms,
    *,
    specs: Iterable[str],
    tracker: Tracker,
    transport: "Transport | None" = None,
    condition: Condition | None = None,
    barred: frozenset[str] = frozenset(),
) -> AsyncIterator[Bench]:
    """Open the answerers under the folder's lock; `barred` are models that none of them may turn out to be."""
    answerers = {spec: _open(spec, terms, transport) for spec in dict.fromkeys(specs)}
    try:
        for one in answerers.values():
            one.on_wait(lambda detail: tracker.enter("waiting", detail))
            refuse_unfit(one, example_request(terms.setting), max_usd=terms.max_usd)
        places = max(one.concurrency for one in answerers.values())
        with hold(folder):
            ledger = Ledger(folder / JUDGE_LEDGER, places=places)
            offices: list[BatchOffice] = []
            try:
                tracker.counts.take_spent(ledger)
                set_aside_usd = 0.0 if terms.batch else await _take_in(folder, terms, ledger, tracker, transport)
                budget, shared = _budget(terms, ledger, set_aside_usd), asyncio.Semaphore(places)
                spools = folder / BATCHES
                batched = [one for one in answerers.values() if terms.batch and isinstance(one, ModelAnswerer)]
                offices += [BatchOffice(one, ledger, budget, tracker=tracker, folder=spools) for one in batched]
                desks = {
                    spec: Desk(one, ledger, budget, shared, tracker, preflight=terms.preflight)
                    for spec, one in answerers.items()
                }
                desks |= {office.answerer.spec: BatchDesk(office, ledger, tracker=tracker) for office in offices}
                hearings = {
                    spec: Hearing(desk, terms.setting, condition or Condition(), barred) for spec, desk in desks.items()
                }
                yield Bench(hearings, ledger, offices, terms.wait)
            finally:
                for office in offices:
                    await office.close()
                ledger.close()
    finally:
        for one in answerers.values():
            await one.close()


def _budget(terms: JudgeTerms, ledger: Ledger, set_aside_usd: float) -> Budget:
    totals = ledger.totals()
    spent_usd = None if totals.cost_usd is None else totals.cost_usd + set_aside_usd
    return Budget(max_usd=terms.max_usd, max_calls=terms.max_calls, spent_usd=spent_usd, calls=totals.calls_made)


async def _take_in(
    folder: Path, terms: JudgeTerms, ledger: Ledger, tracker: Tracker, transport: "Transport | None"
) -> float:
    """Collect the results of earlier sessions' batches; returns what the calls still waiting in them may cost."""
    set_aside_usd = 0.0
    for spec in dict.fromkeys(batch.model for batch in read_batches(ledger.connection) if batch.state != "ended"):
        answerer = open_model_answerer(
            spec, base_urls=terms.base_urls, transport=transport, prices=terms.prices, is_batch=True
        )
        assert isinstance(answerer, ModelAnswerer)
        try:
            set_aside_usd += await take_in_batches(
                answerer, ledger, tracker=tracker, folder=folder / BATCHES, cancels=False
            )
        finally:
            await answerer.close()
    return set_aside_usd


def _open(spec: str, terms: JudgeTerms, transport: "Transport | None") -> Answerer[FormPrompt]:
    return open_form_answerer(
        spec,
        ledger=JUDGE_LEDGER,
        refusal=UsageError(f"{spec} is not a judge", remedy=f"the embedded judge is {RULES}"),
        base_urls=terms.base_urls,
        transport=transport,
        prices=terms.prices,
        is_batch=terms.batch,
    )


def blank_judgement(key: UnitKey, judge: str, terms: JudgeTerms, *, repeat: int) -> Judgement:
    """A judgement not made yet."""
    case, sample, what = key
    return Judgement(
        case=case,
        sample=sample,
        what=what,
        judge=judge,
        repeat=repeat,
        state="unjudged",
        setting=terms.setting,
        prompt=prompt_version(what),
    )


async def ask_verdicts(
    hearing: Hearing, blank: Judgement, units: UnitSet, *, evidence: Evidence, source: Source, ledger: Ledger
) -> Judgement:
    """Ask for a verdict on every unit; the judgement holds the outcome and what it cost."""
    prompt = verdict_prompt(units, evidence, source)
    heard = await hearing.hear(
        prompt,
        lambda text: KINDS[units.what].read_reply(text, prompt.call, units, evidence.names()),
        case_id=blank.case,
        repeat=blank.repeat,
        rounds=blank.round,
    )
    costs = [one.cost_usd for one in heard.spent]
    calls = tuple(one.call_id for one in heard.spent)
    known = replace(
        blank,
        model=heard.model,
        images=len(evidence.images),
        tries=len(heard.spent),
        calls=calls,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost),
        judged_at=ledger.ended_at(calls),
    )
    if isinstance(heard.result, Unjudged):
        return replace(known, why=heard.result.kind, detail=heard.result.detail)
    return replace(known, state="ok", verdicts=heard.result)
