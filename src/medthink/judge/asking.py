"""Asking a judge through the ledger: unusable replies are asked for again, and finally count as `Unjudged`."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from medthink.core.errors import Declined, MedThinkError, UsageError
from medthink.judge.judgement import Evidence, Judgement, JudgeSettings, Sight, Unjudged, default_sight, model_identity
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import prompt_version, verdict_prompt
from medthink.judge.units import UnitKey, UnitSet, UnitSource
from medthink.models.request import EXAMPLE_SCHEMA, Effort, Reply, Request, TextPart
from medthink.runs.batches.jobs import Batch
from medthink.runs.calls.answerers import Answerer, refuse_unfit
from medthink.runs.calls.asking import LedgerCallMaker
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.calls.forms import MAX_TRIES, FormAsker, open_form_answerer
from medthink.runs.calls.opening import Calls, open_calls
from medthink.runs.calls.rehearsal import Rehearsal, without_limits
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.runs.manifest import CallTerms
from medthink.runs.progress import ProgressTracker
from medthink.workflow.ask import Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.forms import RULES, FormPrompt, ReplyFault
from medthink.workflow.prediction import CallCost

if TYPE_CHECKING:
    from medthink.models.transport import Transport

MAX_REPEATS = 1000

Read = TypeVar("Read")


class JudgeAnswer(msgspec.Struct, Generic[Read], frozen=True, kw_only=True):
    """The outcome of a judge's replies, and their cost."""

    result: Read | Unjudged
    model: str
    spent: tuple[CallCost, ...]


class Judge:
    """One judge: its settings, and the models that it must not turn out to be."""

    def __init__(
        self, desk: LedgerCallMaker[FormPrompt], setting: JudgeSettings, condition: Condition, barred: frozenset[str]
    ) -> None:
        self.desk = desk
        self._asker = FormAsker(desk, example_request(setting), condition)
        self._barred = barred

    async def hear(
        self,
        prompt: FormPrompt,
        read: Callable[[str], Read | ReplyFault],
        *,
        case_id: int,
        repeat: int,
        rounds: int = 0,
    ) -> JudgeAnswer[Read]:
        """Ask until a reply can be used; after the last try, its fault is recorded as the reason for no verdict.

        `rounds` counts how often the whole series of tries was made before.
        """

        def read_reply(reply: Reply) -> Read | ReplyFault:
            self._refuse_self(reply.model)
            _refuse_cut(reply)
            return read(reply.text)

        first = (rounds * MAX_REPEATS + repeat) * MAX_TRIES
        told = await self._asker.ask(prompt, read_reply, case_id=case_id, first_sample=first)
        return JudgeAnswer(result=_or_unjudged(told.result), model=told.model, spent=told.spent)

    def _refuse_self(self, model: str) -> None:
        if model_identity(model) in self._barred:
            raise Declined(
                f"{self.desk.answerer.spec} reports that it is {model}, the model being judged",
                remedy="choose another judge, or add --allow-self",
            )


def example_request(setting: JudgeSettings) -> Request:
    """An almost empty request with the judges' settings, to see whether the provider accepts them."""
    return Request(
        parts=(TextPart("?"),),
        schema=EXAMPLE_SCHEMA if setting.use_schema else None,
        is_json_checked=False,
        max_tokens=setting.max_tokens,
        temperature=setting.temperature,
        effort=setting.effort,
    )


def _refuse_cut(reply: Reply) -> None:
    if reply.stop == "truncated":
        raise Unanswered("truncated", "the judge's reply was truncated")
    if reply.stop != "end":
        raise Unanswered("refused", f"the judge's reply was {reply.stop}")


# Only the images of a run can be made fewer or smaller; a judge sees those of its run, or none.
_FEWER_IMAGES = re.compile(r"\b(?:choose|lower|set) [^→;]*--(?:image-share|image-detail|max-side|max-bytes)\b[^→;]*")


def for_judges(said: str) -> str:
    """A failure's message or remedy, in the flags that a judge can be asked with."""
    return _FEWER_IMAGES.sub(
        lambda found: f"{'lower --max-tokens, or ' if '--max-tokens' in found[0] else ''}judge with --without-images",
        said,
    )


def _or_unjudged(result: Read | ReplyFault | Unanswered) -> Read | Unjudged:
    match result:
        case ReplyFault(kind=kind, complaint=complaint):
            return Unjudged(kind, complaint)
        case Unanswered(state=("refused" | "truncated" | "failed") as state, detail=detail):
            return Unjudged(state, for_judges(detail))
        case Unanswered(detail=detail):
            return Unjudged("failed", for_judges(detail))
    return result


class AskingSettings(CallTerms, frozen=True, kw_only=True):
    """The judges, the parts of a case that they see, the parameters of their calls, and the limits."""

    judges: tuple[str, ...]
    sees: tuple[Sight, ...] | None = None
    effort: Effort | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    use_schema: bool = True

    def setting_of(self, judge: str) -> JudgeSettings:
        """The settings of a judge of the session; where nothing is said, it sees all that it can."""
        return JudgeSettings(
            sees=self.sees or default_sight(judge),
            effort=self.effort,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            use_schema=self.use_schema,
        )


JUDGE_LEDGER = "judge.sqlite"
BATCHES = "judge-batches"


class JudgesResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a session of judges: the calls made, and what stopped it early, if anything.

    `warnings` did not stop it. `jobs` are the batches its calls are waiting in.
    """

    calls_made: int
    stopped_by: BudgetReached | None
    warnings: tuple[str, ...] = ()
    jobs: tuple[Batch, ...] = ()


Ended = TypeVar("Ended", bound=JudgesResult)


def find_stop(ends: Iterable[BudgetReached | BaseException | None]) -> BudgetReached | None:
    """The limit that stopped one of the judges, if any did; an error that ended one is raised."""
    listed = list(ends)
    for end in listed:
        if isinstance(end, BaseException) and not isinstance(end, BudgetReached):
            raise end
    return next((end for end in listed if isinstance(end, BudgetReached)), None)


class Judges(NamedTuple):
    """The judges by spec, and their calls."""

    hearings: dict[str, Judge]
    calls: Calls[FormPrompt]

    async def work(self, ask_all: "Callable[[Judges], Awaitable[Ended]]") -> "Ended":
        """Make all calls: once, or with batches, pass after pass until none is left; the last pass counts."""
        sessions: list[Ended] = []

        async def make_pass() -> BudgetReached | None:
            sessions.append(await ask_all(self))
            return sessions[-1].stopped_by

        await self.calls.work(make_pass)
        # Calls queued during a pass are sent when it ends.
        return replace(sessions[-1], jobs=self.calls.jobs)


@asynccontextmanager
async def open_judges(
    folder: Path,
    terms: AskingSettings,
    *,
    specs: Iterable[str],
    tracker: ProgressTracker,
    transport: "Transport | None" = None,
    condition: Condition | None = None,
    barred: frozenset[str] = frozenset(),
    rehearsal: Rehearsal | None = None,
) -> AsyncIterator[Judges]:
    """Open the answerers under the folder's lock; `barred` are models that none of them may turn out to be.

    In a rehearsal nothing is sent, and the folder is the one that is thrown away.
    """
    answerers = [_open(spec, terms, transport, rehearsal) for spec in dict.fromkeys(specs)]
    if rehearsal is not None:
        terms = without_limits(terms)
    try:
        for one in answerers:
            one.on_wait(lambda detail: tracker.enter("waiting", detail))
            refuse_unfit(one, example_request(terms.setting_of(one.spec)), max_usd=terms.max_usd)
        places = max(one.concurrency for one in answerers)
        with lock_run(folder), closing(Ledger(folder / JUDGE_LEDGER, places=places)) as ledger:
            opened = open_calls(answerers, ledger, terms, spools=folder / BATCHES, tracker=tracker, transport=transport)
            async with opened as calls:
                hearings = {
                    spec: Judge(desk, terms.setting_of(spec), condition or Condition(), barred)
                    for spec, desk in calls.desks.items()
                }
                yield Judges(hearings, calls)
    except MedThinkError as error:
        error.remedy = for_judges(error.remedy)
        raise
    finally:
        for one in answerers:
            await one.close()


def _open(
    spec: str, terms: AskingSettings, transport: "Transport | None", rehearsal: Rehearsal | None
) -> Answerer[FormPrompt]:
    refusal = UsageError(f"{spec} is not a judge", remedy=f"the embedded judge is {RULES}")
    return open_form_answerer(
        spec, terms, ledger=JUDGE_LEDGER, refusal=refusal, transport=transport, rehearsal=rehearsal
    )


def blank_judgement(key: UnitKey, judge: str, terms: AskingSettings, *, repeat: int) -> Judgement:
    """A judgement not made yet."""
    case, sample, what = key
    return Judgement(
        case=case,
        sample=sample,
        what=what,
        judge=judge,
        repeat=repeat,
        state="unjudged",
        setting=terms.setting_of(judge),
        prompt=prompt_version(what),
    )


async def ask_verdicts(
    hearing: Judge, blank: Judgement, units: UnitSet, *, evidence: Evidence, source: UnitSource, ledger: Ledger
) -> Judgement:
    """Ask for a verdict on every unit; the judgement records the outcome and its cost."""
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
