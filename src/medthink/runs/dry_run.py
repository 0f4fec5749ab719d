"""A dry run: the tasks run and every request is built, but nothing is sent; made-up replies lead to the next step.

`--dry-run` and `--show-prompts` therefore use the same code that would send.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.models.catalog import PROVIDERS, least_cached
from medthink.models.image_detail import count_shrunk, tell_detail
from medthink.models.request import Reply, Request, Schema, Usage
from medthink.models.tokens import beginning_of
from medthink.runs.calls.answerers import Answerer, ModelAnswerer, open_answerer
from medthink.runs.calls.asking import CaseAsk, SharedCalls, all_replies, begins_again, call_for
from medthink.runs.calls.rehearsal import TYPICAL_TEXT, CallEstimate, CallTally, fill, usage_of
from medthink.runs.earlier import find_earlier, plan_manifest
from medthink.runs.engine import run_to_end
from medthink.runs.ledger.queries import LEDGER, LedgerQueries
from medthink.runs.manifest import Progress, RunSpec
from medthink.runs.run import summarise
from medthink.runs.selection import select_cases
from medthink.runs.session import make_folder, refuse_early
from medthink.runs.survey import Survey, survey
from medthink.workflow.ask import Prompt
from medthink.workflow.prediction import CallCost
from medthink.workflow.tasks import find_task
from medthink.workflow.view import Showing

if TYPE_CHECKING:
    from medthink.models.transport import Transport

Witness = Callable[[Prompt, Request], None]
_NOTHING = CallCost(0, None, None, 0.0)


class EarlierState(msgspec.Struct, frozen=True):
    """The state left by earlier sessions of a run: its ledger, the predictions that stay, and its progress."""

    records: LedgerQueries
    kept: frozenset[tuple[int, int]]
    progress: Progress


class SweepDryRun:
    """Shared by the dry runs of a sweep: the calls already shown, and those on record."""

    def __init__(self, siblings: SharedCalls | None = None) -> None:
        self.shown: set[str] = set()
        self.siblings = siblings or SharedCalls()


class DryRunCallMaker:
    """Makes no calls: recorded calls get their replies, all others are passed to a callback and get made-up ones."""

    def __init__(
        self,
        model: str,
        witness: Witness,
        *,
        earlier: EarlierState | None = None,
        filler: str = TYPICAL_TEXT,
        sweep: SweepDryRun | None = None,
    ) -> None:
        self._model = model
        self._witness = witness
        self._earlier = earlier
        self._filler = filler
        self._sweep = sweep or SweepDryRun()
        self.cases: set[int] = set()

    async def call(self, prompt: Prompt, request: Request, case_id: int) -> tuple[Reply, CallCost]:
        """Show the request if it would be sent, and make up a reply."""
        key = call_for(self._model, prompt, request, case_id).key
        if (reply := self._find(key)) is not None:
            return reply, _NOTHING
        if key not in self._sweep.shown:
            # Identical requests within a case, or by two runs of a sweep, are one call.
            self._sweep.shown.add(key)
            self.cases.add(case_id)
            self._witness(prompt, request)
        made_up = _fill(prompt.schema, len(prompt.question.images), self._filler)
        return Reply(text=msgspec.json.encode(made_up).decode(), json=made_up), _NOTHING

    def _find(self, key: str) -> Reply | None:
        """The reply on record, of this run or of one that shares its calls."""
        if self._earlier is not None and (found := self._earlier.records.finished(key)) is not None:
            return found.reply
        shared = self._sweep.siblings.find(key)
        return None if shared is None else shared.finished.reply

    def is_kept(self, case_id: int, sample: int) -> bool:
        """Whether the prediction already exists and stays."""
        return self._earlier is not None and (case_id, sample) in self._earlier.kept


class _RehearsalAsk(CaseAsk):
    """`ask` in order: concurrent requests are shown one after the other."""

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        """Ask several things."""
        outcomes = [await asyncio.gather(self(prompt), return_exceptions=True) for prompt in prompts]
        return all_replies([outcome for (outcome,) in outcomes])


class DryRun(CallEstimate, frozen=True, kw_only=True):
    """The calls left to make in a run, for how many cases, and those already made.

    Of the input, `cached_tokens` are found in the provider's cache, which saves `saved_usd`; `could_save_usd` is what
    it would save without schemas. `detail` is what the provider does to images, and `shrunk` how many it is known to
    shrink.
    """

    cases: int
    cached_tokens: int = 0
    saved_usd: float = 0.0
    could_save_usd: float = 0.0
    detail: str = ""
    shrunk: int = 0
    done: Progress | None


def estimate(spec: RunSpec, *, transport: "Transport | None" = None, sweep: SweepDryRun | None = None) -> DryRun:
    """Count what the run still has to send, and estimate its cost; it needs no key."""
    return run_to_end(_estimate(spec, transport, sweep))


async def dry_run(cases: Iterable[Case], spec: RunSpec, desk: DryRunCallMaker, *, benchmark: Benchmark) -> None:
    """Run the task for the cases without making calls."""
    condition = spec.condition
    task = find_task(spec.task, condition)
    showing = Showing(condition, benchmark[spec.selection.split])
    for case in cases:
        left = [sample for sample in range(condition.samples) if not desk.is_kept(case.id, sample)]
        if not left:
            continue
        shown, cues = showing.show(case)
        for sample in left:
            ask = _RehearsalAsk(desk, condition, case_id=case.id, sample=sample)
            await task.run(shown.question, cues, ask, condition)


async def _estimate(spec: RunSpec, transport: "Transport | None", sweep: SweepDryRun | None) -> DryRun:
    benchmark = Benchmark.open(spec.benchmark).remembering(rehash=spec.rehash)
    seen = survey(benchmark, spec.selection, task=spec.task, condition=spec.condition)
    answerer = open_answerer(
        spec.model,
        benchmark=benchmark,
        base_urls=spec.base_urls,
        transport=transport,
        prices=spec.price_source,
        needs_key=False,
        is_batch=spec.batch,
    )
    refuse_early(replace(spec, max_usd=None), answerer)
    earlier = _open_earlier(spec, seen)
    tally = _Tally(answerer, spec)
    desk = DryRunCallMaker(spec.model, tally.see, earlier=earlier, sweep=sweep)
    try:
        await dry_run(select_cases(benchmark, spec.selection), spec, desk, benchmark=benchmark)
    finally:
        await answerer.close()
        if earlier is not None:
            earlier.records.close()
    return DryRun(
        **msgspec.structs.asdict(tally.total),
        cases=len(desk.cases),
        cached_tokens=tally.cached_tokens,
        saved_usd=tally.saved_usd,
        could_save_usd=tally.could_save_usd,
        detail=tally.detail if tally.total.images else "",
        shrunk=tally.shrunk,
        done=earlier.progress if earlier else None,
    )


def _open_earlier(spec: RunSpec, seen: Survey) -> EarlierState | None:
    """The state of the run so far, or LedgerError if the run would be refused."""
    if spec.out is None or not spec.out.exists():
        return None
    make_folder(spec.out)
    new = plan_manifest(spec, seen.fingerprints)
    old = find_earlier(spec.out, new, seen.digests)
    if old is None or not (spec.out / LEDGER).exists():
        return None
    records = LedgerQueries.open(spec.out)
    kept = records.good_predictions() if old.package == new.package else frozenset()
    return EarlierState(records, kept, summarise(records, seen.cases * spec.condition.samples))


class _Cache:
    """What a provider's cache would hold: the beginnings of the requests so far."""

    def __init__(self, least: int | None) -> None:
        self._least = least
        self._held: set[str] = set()

    def see(self, request: Request, tokens: int) -> tuple[int, int]:
        """The tokens that the request finds in the cache, and those that it puts there."""
        if self._least is None or tokens < self._least:
            return 0, 0
        key = beginning_of(request).key()
        if key in self._held:
            return tokens, 0
        self._held.add(key)
        return 0, tokens


class _Tally(CallTally):
    """Counts the requests of a run, and what the provider's cache saves."""

    def __init__(self, answerer: Answerer[Prompt], spec: RunSpec) -> None:
        super().__init__()
        self._answerer = answerer
        self._condition = spec.condition
        least = None if spec.batch else least_cached(spec.model)
        self._cache, self._cache_without_schemas = _Cache(least), _Cache(least)
        self._provider, _, self._name = spec.model.removeprefix("inspect/").partition("/")
        is_known = self._provider in PROVIDERS
        self.detail = tell_detail(spec.condition.image_detail, self._provider, self._name) if is_known else ""
        self.cached_tokens = self.shrunk = 0
        self.saved_usd = self.could_save_usd = 0.0

    def see(self, prompt: Prompt, request: Request) -> None:
        """Count one request."""
        self.shrunk += count_shrunk(request, self._provider, self._name)
        made_up = msgspec.json.encode(_fill(prompt.schema, len(prompt.question.images), TYPICAL_TEXT)).decode()
        plain = usage_of(self._answerer, request, made_up)
        usage = self._with_cache(request, plain, self._cache)
        self.count(self._answerer, request, usage)
        self.cached_tokens += usage.cached
        self.saved_usd += self._saved(plain, usage)
        bare = replace(self._condition, use_schema=False)
        again = replace(request, schema=None, is_repeated=bool(request.images) and begins_again(prompt.kind, bare))
        self.could_save_usd += self._saved(plain, self._with_cache(again, plain, self._cache_without_schemas))

    def _with_cache(self, request: Request, plain: Usage, cache: _Cache) -> Usage:
        """The usage as it would be with what the provider's cache holds."""
        if not request.is_repeated:
            return plain
        found, kept = cache.see(request, self._answerer.input_tokens(beginning_of(request)))
        written = kept if isinstance(self._answerer, ModelAnswerer) and self._answerer.writes_cache(request) else 0
        return replace(plain, cached=min(found, plain.input), written=min(written, plain.input))

    def _saved(self, plain: Usage, usage: Usage) -> float:
        return (self._answerer.cost_usd(plain) or 0.0) - (self._answerer.cost_usd(usage) or 0.0)


def _fill(schema: Schema | None, images: int, text: str) -> Any:
    """The smallest value that follows the schema, with made-up texts."""
    return None if schema is None else fill(schema.definition, images, text)
