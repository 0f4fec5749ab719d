"""A dry run of what asks in forms: the session runs to its end on made-up replies, which are counted and not kept."""

import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from medthink.core.jsonio import encode_json
from medthink.models.request import AttemptLog, Reply, Request, Usage
from medthink.models.tokens import estimate_text_tokens
from medthink.runs.calls.answerers import Answerer, CostsNothing
from medthink.runs.manifest import CallTerms
from medthink.workflow.ask import PromptKind
from medthink.workflow.forms import FormPrompt

# A typical reply length for a step; a reasoning model's hidden tokens come on top and cannot be predicted.
TYPICAL_WORDS = 90
TYPICAL_TEXT = " ".join(["finding"] * TYPICAL_WORDS)


class CallEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The calls left to make. Tokens and money are estimates; `cost_usd` is None if the price is unknown."""

    calls: int = 0
    images: int = 0
    upload_bytes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


def sum_estimates(made: Iterable[CallEstimate]) -> CallEstimate:
    """All of them together; the cost is unknown if one of them is."""
    total: dict[str, Any] = {}
    for one in made:
        for name in CallEstimate.__struct_fields__:
            parts = total.get(name, 0), getattr(one, name)
            total[name] = None if None in parts else sum(parts)
    return CallEstimate(**total)


class CallTally:
    """Counts requests and adds up their tokens and cost."""

    def __init__(self) -> None:
        self.total = CallEstimate()

    def count(self, answerer: Answerer[Any], request: Request, usage: Usage) -> None:
        """Count one request of this usage."""
        before = self.total
        # Call by call, because a long prompt may have a different price.
        cost_usd = answerer.cost_usd(usage)
        self.total = replace(
            before,
            calls=before.calls + 1,
            images=before.images + len(request.images),
            upload_bytes=before.upload_bytes + answerer.upload_bytes(request),
            input_tokens=before.input_tokens + usage.input,
            output_tokens=before.output_tokens + usage.output,
            cost_usd=None if before.cost_usd is None or cost_usd is None else before.cost_usd + cost_usd,
        )


def usage_of(answerer: Answerer[Any], request: Request, reply: str) -> Usage:
    """The tokens of a request, if it got this reply; without counts for the prompt, there are none for the reply."""
    tokens = answerer.input_tokens(request)
    return Usage(input=tokens, output=estimate_text_tokens(reply) if tokens else 0)


class Rehearsal:
    """The dry run of one session: a folder that is thrown away, with copies of its ledger, and the count so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tally = CallTally()

    def stand_in(self, answerer: Answerer[FormPrompt]) -> Answerer[FormPrompt]:
        """What answers in the model's place."""
        return _StandIn(answerer, self)


@contextmanager
def open_rehearsal(folder: Path, ledger: str) -> Iterator[Rehearsal]:
    """A rehearsal of a session in this folder, which stays as it is; calls that its ledger has are not counted."""
    with tempfile.TemporaryDirectory(prefix="medthink-dry-run-") as place:
        if (folder / ledger).is_file():
            with (
                closing(sqlite3.connect(folder / ledger)) as here,
                closing(sqlite3.connect(f"{place}/{ledger}")) as copy,
            ):
                here.backup(copy)
        yield Rehearsal(Path(place))


Terms = TypeVar("Terms", bound=CallTerms)


def without_limits(terms: Terms) -> Terms:
    """The terms of a rehearsal: nothing is sent, so nothing limits it."""
    return replace(
        terms, max_usd=None, max_calls=None, preflight=False, batch=False, wait=True, cancel_batches=False,
        forget_batches=(),
    )  # fmt: skip


class _StandIn(CostsNothing):
    """Answers by rules where the prompt has some, else with the smallest reply of the form; nothing is sent."""

    def __init__(self, model: Answerer[FormPrompt], rehearsal: Rehearsal) -> None:
        self.spec = model.spec
        self.concurrency = model.concurrency
        self._model = model
        self._rehearsal = rehearsal

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Refuse what the model would."""
        self._model.refuse(request, kinds, has_options=has_options)

    async def answer(self, prompt: FormPrompt, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Count the request, and make up a reply."""
        form = fill(prompt.schema.definition, 1, TYPICAL_TEXT)
        if prompt.by_rules is not None:
            form = {"call": prompt.call} | msgspec.to_builtins(prompt.by_rules())
        text = encode_json(form).decode()
        self._rehearsal.tally.count(self._model, request, usage_of(self._model, request, text))
        return Reply(text=text, json=form, usage=Usage(), model=self.spec)

    def on_wait(self, tell: Callable[[str], None]) -> None:
        """Nothing is waited for."""

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


def fill(node: dict[str, Any], images: int, text: str) -> Any:
    """The smallest value that follows a schema, with made-up texts; a list has an entry for each image."""
    if "enum" in node:
        return node["enum"][0]
    if node["type"] == "object":
        return {name: fill(part, images, text) for name, part in node["properties"].items()}
    if node["type"] == "array":
        return [fill(node["items"], images, text) for _ in range(images)]
    return text
