"""The judges' bench: every judge opened on one ledger, one budget and one share of calls in flight."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from medthink.core.errors import UsageError
from medthink.judge.asking import Hearing, example_request, read_verdicts
from medthink.judge.evidence import Evidence
from medthink.judge.judgement import RULES, Judgement
from medthink.judge.prompts import JudgePrompt, prompt_version, verdict_prompt
from medthink.judge.terms import JudgeTerms
from medthink.judge.units import Source, UnitKey, UnitSet
from medthink.judge.verdicts import Unjudged
from medthink.runs.answerers import Answerer, ReplayAnswerer, open_model_answerer, refuse_unfit
from medthink.runs.asking import Desk
from medthink.runs.budget import Budget
from medthink.runs.ledger import Ledger
from medthink.runs.lock import hold
from medthink.runs.progress import Tracker
from medthink.workflow.condition import Condition

if TYPE_CHECKING:
    from medthink.models.transport import Transport

JUDGE_LEDGER = "judge.sqlite"


class Bench(NamedTuple):
    """The judges by spec, ready to be asked, and where their calls are recorded."""

    hearings: dict[str, Hearing]
    ledger: Ledger

    @property
    def calls_made(self) -> int:
        """How many calls were made in this session."""
        return sum(hearing.desk.made for hearing in self.hearings.values())


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
    """Open the answerers under the folder's lock; `barred` are voices that none of them may turn out to have."""
    answerers = {spec: _open(spec, terms, transport) for spec in dict.fromkeys(specs)}
    try:
        for one in answerers.values():
            one.on_wait(lambda detail: tracker.enter("waiting", detail))
            refuse_unfit(one, example_request(terms.setting), max_usd=terms.max_usd)
        places = max(one.concurrency for one in answerers.values())
        with hold(folder):
            ledger = Ledger(folder / JUDGE_LEDGER, places=places)
            try:
                budget, shared = _budget(terms, ledger), asyncio.Semaphore(places)
                desks = {
                    spec: Desk(one, ledger, budget, shared, tracker, preflight=terms.preflight)
                    for spec, one in answerers.items()
                }
                hearings = {
                    spec: Hearing(desk, terms.setting, condition or Condition(), barred) for spec, desk in desks.items()
                }
                yield Bench(hearings, ledger)
            finally:
                ledger.close()
    finally:
        for one in answerers.values():
            await one.close()


def _budget(terms: JudgeTerms, ledger: Ledger) -> Budget:
    totals = ledger.totals()
    return Budget(max_usd=terms.max_usd, max_calls=terms.max_calls, spent_usd=totals.cost_usd, calls=totals.calls_made)


def _open(spec: str, terms: JudgeTerms, transport: "Transport | None") -> Answerer[JudgePrompt]:
    provider, _, name = spec.partition("/")
    if spec == RULES:
        from medthink.judge.rules import RulesJudge

        return RulesJudge()
    if provider == "baseline":
        raise UsageError(f"{spec} is no judge", remedy=f"the embedded judge is {RULES}")
    if provider == "replay":
        return ReplayAnswerer(spec, Path(name), JUDGE_LEDGER)
    return open_model_answerer(spec, base_urls=terms.base_urls, transport=transport, prices=terms.prices)


def blank_judgement(key: UnitKey, judge: str, terms: JudgeTerms, *, repeat: int) -> Judgement:
    """A judgement that nobody has made yet."""
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
    """Ask for a verdict on every unit; the judgement says what came of it and what it took."""
    prompt = verdict_prompt(units, evidence, source)
    heard = await hearing.hear(
        prompt,
        lambda text: read_verdicts(text, prompt),
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
