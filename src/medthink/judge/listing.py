"""Making the lists of decisive findings, once per case for all judges and readers of a run."""

from collections.abc import Iterable, Mapping

from medthink.cases.case import Case
from medthink.judge.asking import Hearing
from medthink.judge.decisive import (
    DecisiveFinding,
    DecisiveForm,
    DecisiveList,
    check_decisive,
    digest_reference,
    list_by_rule,
    make_list,
)
from medthink.judge.prompts import decisive_prompt
from medthink.judge.verdicts import Unjudged
from medthink.runs.budget import BudgetReached
from medthink.runs.engine import work_through
from medthink.workflow.forms import RULES, Fault, read_form


class Lister:
    """Makes the missing lists; the list of an unchanged case stays as it is, edited or not."""

    def __init__(self, hearing: Hearing, kept: Mapping[int, DecisiveList]) -> None:
        self._hearing = hearing
        self._kept = kept

    async def make(self, cases: Iterable[Case]) -> tuple[dict[int, DecisiveList | Unjudged], BudgetReached | None]:
        """The list of every case, or why there is none yet."""
        lists: dict[int, DecisiveList | Unjudged] = {}

        async def handle(case: Case) -> None:
            lists[case.id] = await self._list(case)

        stop = await work_through(cases, handle, workers=self._hearing.desk.answerer.concurrency)
        return lists, stop

    async def _list(self, case: Case) -> DecisiveList | Unjudged:
        kept = self._kept.get(case.id)
        if kept is not None and kept.reference == digest_reference(case):
            return kept
        judge = self._hearing.desk.answerer.spec
        if judge == RULES:
            return list_by_rule(case)
        prompt = decisive_prompt(case)

        def read(text: str) -> tuple[DecisiveFinding, ...] | Fault:
            form = read_form(text, DecisiveForm, prompt.call)
            return form if isinstance(form, Fault) else check_decisive(form, case)

        heard = await self._hearing.hear(prompt, read, case_id=case.id, repeat=0)
        if not isinstance(heard.result, Unjudged):
            return make_list(case, heard.result, made_by=judge)
        if heard.result.kind == "failed":
            # The call may succeed next time; a list made another way now would be permanent.
            return Unjudged("unsplit", heard.result.detail)
        return list_by_rule(case)
