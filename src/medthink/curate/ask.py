"""How a stage asks a model: fenced data, a reply form, through the ledger."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from medthink.cases.case import Image
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.models.request import Reply, Request
from medthink.runs.calls.answerers import Answerer
from medthink.runs.calls.forms import FormAsker, open_form_answerer
from medthink.runs.calls.opening import Calls
from medthink.runs.manifest import CallTerms
from medthink.workflow.ask import Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.forms import RULES, FormPrompt, PromptFiles, ReplyFault, ReplyForm, form_schema, read_form

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.calls.rehearsal import Rehearsal

CURATE_LEDGER = "ledger.sqlite"

_FILES = PromptFiles(Path(__file__).parent / "prompts")

Form = TypeVar("Form", bound=ReplyForm)


def curate_prompt(
    kind: str,
    case_id: int,
    *,
    data: dict[str, Any],
    form: Mapping[str, dict[str, Any]],
    by_rules: dict[str, Any],
    images: tuple[Image, ...] = (),
) -> FormPrompt:
    """The text of `prompts/KIND.md`, then the fenced data; `form` holds the schema of each field."""
    return _FILES.prompt(
        kind,
        str(case_id),
        data=data,
        schema=lambda call: form_schema(kind, call, **form),
        images=images,
        by_rules=lambda: by_rules,
    )


def prompts_version() -> str:
    """The digest of all prompts. If one changes, every stage that asks runs again; answered calls are not repeated."""
    return digest_value({path.stem: _FILES.read(path.stem) for path in sorted(_FILES.folder.glob("*.md"))})


class StageModel:
    """`ask` for the cases of a stage: a reply in the form asked for, or `Unanswered`."""

    def __init__(self, calls: Calls[FormPrompt], example: Request) -> None:
        (self.desk,) = calls.desks.values()
        self.calls = calls
        self._asker = FormAsker(self.desk, example, Condition())

    @property
    def by(self) -> str:
        """The answerer, for the decision log."""
        return f"model {self.desk.answerer.spec}"

    async def __call__(self, prompt: FormPrompt, form: type[Form], case_id: int) -> Form:
        """Ask until a reply can be used; after the last try the case is unanswered."""

        def read_reply(reply: Reply) -> Form | ReplyFault:
            if reply.stop != "end":
                raise Unanswered("truncated" if reply.stop == "truncated" else "refused", f"the reply was {reply.stop}")
            return read_form(reply.text, form, prompt.call)

        result = (await self._asker.ask(prompt, read_reply, case_id=case_id)).result
        if isinstance(result, ReplyFault):
            raise Unanswered("unparsed", result.complaint)
        if isinstance(result, Unanswered):
            raise result
        return result


def open_stage_answerer(
    spec: str, terms: CallTerms, transport: "Transport", rehearsal: "Rehearsal | None" = None
) -> Answerer[FormPrompt]:
    """Open the model that answers a stage's prompts; a baseline that picks options cannot."""
    refusal = UsageError(
        f"{spec} answers cases, not a curator's questions", remedy=f"use {RULES} for the embedded rules"
    )
    return open_form_answerer(
        spec, terms, ledger=CURATE_LEDGER, refusal=refusal, transport=transport, rehearsal=rehearsal
    )
