"""Cutting a run's texts into units, once for all judges and readers."""

from collections.abc import Iterable, Mapping

from medthink.core.errors import UsageError
from medthink.judge.asking import Hearing
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import split_prompt
from medthink.judge.splitting import SplitForm, place_steps
from medthink.judge.units import SENTENCES, Source, Unit, UnitKey, UnitSet, split_source, unit_set
from medthink.judge.verdicts import Unjudged
from medthink.runs.budget import BudgetReached
from medthink.runs.engine import work_through
from medthink.workflow.forms import RULES, Fault, read_form


class Cutter:
    """Cuts what was not cut before; earlier cuts stay as they are, because verdicts and labels refer to them."""

    def __init__(
        self, hearings: Mapping[str, Hearing], kept: Mapping[UnitKey, UnitSet], *, asked: str | None, default: str
    ) -> None:
        self._hearings = hearings
        self._kept = kept
        self._splitter = _choose(kept, asked, default)

    async def cut(self, sources: Iterable[Source]) -> tuple[dict[UnitKey, UnitSet | Unjudged], BudgetReached | None]:
        """The units of every source, in its order; a source that could not be cut this time has none."""
        sets: dict[UnitKey, UnitSet | Unjudged] = {}

        async def handle(source: Source) -> None:
            sets[source.key] = await self._cut_one(source)

        hearing = self._hearings.get(self._splitter)
        workers = hearing.desk.answerer.concurrency if hearing else 1
        stop = await work_through(sources, handle, workers=workers)
        return dict(sorted(sets.items())), stop

    async def _cut_one(self, source: Source) -> UnitSet | Unjudged:
        kept = self._kept.get(source.key)
        if kept is not None and kept.texts == source.digest():
            return kept
        if not source.is_cut_by_model or self._splitter == SENTENCES or not source.parts:
            return split_source(source)
        return await self._ask(source, self._hearing())

    async def _ask(self, source: Source, hearing: Hearing) -> UnitSet | Unjudged:
        prompt = split_prompt(source)

        def read(text: str) -> tuple[Unit, ...] | Fault:
            form = read_form(text, SplitForm, prompt.call)
            return form if isinstance(form, Fault) else place_steps(form, source)

        heard = await hearing.hear(prompt, read, case_id=source.case, repeat=0)
        if not isinstance(heard.result, Unjudged):
            return unit_set(source, heard.result, splitter=self._splitter)
        if heard.result.kind == "failed":
            # The call may succeed next time; a cut made another way now would be permanent.
            return Unjudged("unsplit", heard.result.detail)
        units = split_source(source).units
        detail = f"{heard.result.kind}: {heard.result.detail}"
        return unit_set(source, units, splitter=self._splitter, is_fallback=True, detail=detail)

    def _hearing(self) -> Hearing:
        if self._splitter not in self._hearings:
            raise UsageError(
                f"the run's steps were cut by {self._splitter}, and some texts are not cut yet",
                remedy=f"add --splitter {self._splitter}",
            )
        return self._hearings[self._splitter]


def _choose(kept: Mapping[UnitKey, UnitSet], asked: str | None, default: str) -> str:
    """Who cuts: the splitter used before, else the one asked for, else the first judge."""
    cut = [units for units in kept.values() if KINDS[units.what].is_cut_by_model and units.state != "absent"]
    before = {units.splitter for units in cut}
    wanted = SENTENCES if asked in (SENTENCES, RULES) else asked
    if before and wanted is not None and wanted not in before:
        raise UsageError(
            f"the run's steps were cut by {', '.join(sorted(before))}: verdicts and labels refer to those steps",
            remedy="leave --splitter out, or judge a copy of the run",
        )
    chosen = wanted or (min(before) if before else default)
    return SENTENCES if chosen == RULES else chosen
