"""The interface of a baseline, and the kind that only chooses among the options."""

from collections.abc import Callable, Collection
from typing import Any, Protocol

import msgspec

from medthink.cases.case import Question
from medthink.models.errors import ModelError
from medthink.models.request import Reply, Request, Usage
from medthink.workflow.ask import Prompt, PromptKind


class Baseline(Protocol):
    """A model inside this process that answers from a prompt's structure."""

    name: str

    def answer(self, prompt: Prompt, *, sample: int) -> Reply:
        """Answer in the form the prompt asks for, or raise ModelError where this baseline cannot."""

    def refuse(self, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Raise ModelError if this baseline cannot answer one of these kinds of prompt; called before a run."""


class Pick(msgspec.Struct, frozen=True):
    """The option chosen, and why."""

    letter: str
    explanation: str


Choose = Callable[[Question, int], Pick]


class ChoosingBaseline:
    """A baseline that describes no image: it picks an option, and its findings say that there are none."""

    def __init__(self, name: str, choose: Choose) -> None:
        self.name = name
        self._choose = choose

    def answer(self, prompt: Prompt, *, sample: int) -> Reply:
        """Pick an option; findings and summaries say that there are none."""
        unread = f"Not described: baseline/{self.name} writes no findings."
        if prompt.kind in ("findings", "summary"):
            return reply(self.name, {prompt.kind: unread})
        if (nothing := remember_nothing(prompt)) is not None:
            return reply(self.name, nothing)
        self.refuse([prompt.kind], has_options=bool(prompt.question.options))
        pick = self._choose(prompt.question, sample)
        if prompt.kind == "twi":
            return reply(
                self.name, steps([unread] * len(prompt.question.images), unread, pick.explanation, pick.letter)
            )
        return reply(self.name, {"explanation": pick.explanation, "answer": pick.letter})

    def refuse(self, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Raise ModelError for a discussion, or where no options are shown."""
        if "discussion" in kinds:
            raise unsupported(self.name, "writes no discussion", remedy="ask baseline/retrieval for one")
        if not has_options:
            raise unsupported(self.name, "chooses among options and none are shown", remedy="show the options")


def remember_nothing(prompt: Prompt) -> dict[str, Any] | None:
    """The answer to a recall prompt from a model that remembers nothing; None for any other kind of prompt."""
    match prompt.kind:
        case "hidden_option":
            return {"option": "Not known."}
        case "option_letters":
            return {"letters": list(prompt.question.options)}
        case "case_number":
            return {"case_number": "unknown"}
    return None


def steps(findings: list[str], summary: str, reasoning: str, answer: str) -> dict[str, Any]:
    """The three steps in the form of a single call."""
    return {
        "step1_per_image_findings": findings,
        "step2_integrated_summary": summary,
        "step3_differential_reasoning": reasoning,
        "answer": answer,
    }


def reply(name: str, content: dict[str, Any]) -> Reply:
    """The content as a reply; an embedded baseline takes no tokens and no time."""
    return Reply(text=msgspec.json.encode(content).decode(), json=content, usage=Usage(), model=f"baseline/{name}")


def refuse_settings(name: str, request: Request) -> None:
    """Raise ModelError if the request sets a parameter that this baseline would ignore."""
    for flag, value in (
        ("--temperature", request.temperature),
        ("--effort", request.effort),
        ("--max-tokens", request.max_tokens),
        ("--model-seed", None if name == "random" else request.seed),
    ):
        if value is not None:
            raise unsupported(name, f"takes no {flag}", remedy=f"leave out {flag}")


def unsupported(name: str, problem: str, *, remedy: str) -> ModelError:
    """The error for something that this baseline does not do."""
    return ModelError("unsupported", f"baseline/{name} {problem}", remedy=remedy)
