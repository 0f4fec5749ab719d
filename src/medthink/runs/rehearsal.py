"""A run without its calls: the tasks run for real, every request is built, and made-up replies lead to the next step.

This is how `--dry-run` counts and how `--show-prompts` shows: by the very code that would send.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.models.request import Reply, Request, Schema, Usage
from medthink.models.tokens import estimate_text_tokens
from medthink.runs.answerers import Answerer
from medthink.runs.asking import encode_image, request_for
from medthink.runs.loop import run_to_end
from medthink.runs.showing import Showing
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import Task

Witness = Callable[[Prompt, Request], None]
# A reply of middling length for a step; a reasoning model's hidden thoughts come on top and cannot be foreseen.
TYPICAL_WORDS = 90
_TYPICAL_TEXT = " ".join(["finding"] * TYPICAL_WORDS)


class RehearsalAsk:
    """`ask` that shows each request to a witness and answers with made-up text in the right form."""

    def __init__(self, condition: Condition, witness: Witness, *, sample: int = 0, filler: str = _TYPICAL_TEXT) -> None:
        self._condition = condition
        self._witness = witness
        self._sample = sample
        self._filler = filler
        self._shown: set[str] = set()

    async def __call__(self, prompt: Prompt) -> Reply:
        """Show the request, and make up a reply."""
        images = [part for part in prompt.parts if not isinstance(part, str)]
        parts = {image.path: encode_image(image, self._condition) for image in images}
        request = request_for(prompt, self._condition, self._sample, parts)
        if (key := request.key()) not in self._shown:
            # The same thing asked twice of a case is one call.
            self._shown.add(key)
            self._witness(prompt, request)
        made_up = _fill(prompt.schema, len(prompt.question.images), self._filler)
        return Reply(text=msgspec.json.encode(made_up).decode(), json=made_up)

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        """One after the other: nothing is waited for."""
        return [await self(prompt) for prompt in prompts]


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would take; input and output are estimates, and `cost_usd` is None when the price is not known."""

    cases: int
    calls: int
    images: int
    upload_bytes: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


def estimate(
    cases: Iterable[Case], task: Task, condition: Condition, *, benchmark: Benchmark, answerer: Answerer[Prompt]
) -> Rehearsal:
    """Count what a run of these cases would send and about what it would cost."""
    tally = _Tally(answerer)
    count = rehearse(cases, task, condition, tally.see, benchmark=benchmark)
    return Rehearsal(
        cases=count,
        calls=tally.calls,
        images=tally.images,
        upload_bytes=tally.upload_bytes,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        cost_usd=tally.cost_usd,
    )


def rehearse(
    cases: Iterable[Case],
    task: Task,
    condition: Condition,
    witness: Witness,
    *,
    benchmark: Benchmark,
    filler: str = _TYPICAL_TEXT,
) -> int:
    """Take cases through a task without calling anything; returns how many cases that were."""
    showing = Showing(condition, benchmark)

    async def go_through() -> int:
        count = 0
        for case in cases:
            count += 1
            shown, cues = showing.show(case)
            for sample in range(condition.samples):
                ask = RehearsalAsk(condition, witness, sample=sample, filler=filler)
                await task.run(shown.question, cues, ask, condition)
        return count

    return run_to_end(go_through())


class _Tally:
    """Adds up requests as they pass."""

    def __init__(self, answerer: Answerer[Prompt]) -> None:
        self._answerer = answerer
        self.calls = self.images = self.upload_bytes = self.input_tokens = self.output_tokens = 0
        self.cost_usd: float | None = 0.0

    def see(self, prompt: Prompt, request: Request) -> None:
        """Count one request."""
        self.calls += 1
        self.images += len(request.images)
        self.upload_bytes += self._answerer.upload_bytes(request)
        made_up = msgspec.json.encode(_fill(prompt.schema, len(prompt.question.images), _TYPICAL_TEXT)).decode()
        usage = Usage(input=self._answerer.input_tokens(request), output=estimate_text_tokens(made_up))
        self.input_tokens += usage.input
        self.output_tokens += usage.output
        # Call by call, because a long prompt may have a price of its own.
        cost_usd = self._answerer.cost_usd(usage)
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd


def _fill(schema: Schema | None, images: int, text: str) -> Any:
    """The smallest value that follows the schema, its texts made up."""
    return None if schema is None else _fill_node(schema.definition, images, text)


def _fill_node(node: dict[str, Any], images: int, text: str) -> Any:
    if "enum" in node:
        return node["enum"][0]
    if node["type"] == "object":
        return {name: _fill_node(part, images, text) for name, part in node["properties"].items()}
    if node["type"] == "array":
        return [_fill_node(node["items"], images, text) for _ in range(images)]
    return text
