"""The task `recall`: four questions that only memory of the published case can answer.

The option that is hidden is drawn without knowing the right one, and nothing that is asked has its text. The other
options stand once in the published order and once in another: a model that never saw the case does as well either way.
"""

from collections.abc import Callable, Sequence
from typing import Any

from medthink.cases.case import Question
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.models.request import Reply
from medthink.workflow.ask import Ask, PromptKind, Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.cues import Cues
from medthink.workflow.outcome import Recalled, Recollection, Unparsed, end
from medthink.workflow.parsing import parse_letters, parse_number, parse_text
from medthink.workflow.prompts import load_prompts
from medthink.workflow.view import Shown, apply

RECALL_KINDS: tuple[PromptKind, ...] = ("hidden_option", "hidden_option", "option_letters", "case_number")


async def recall(question: Question, cues: Cues, ask: Ask, condition: Condition) -> Recalled:  # noqa: ARG001
    """Ask for what only memory of the published case can answer: a hidden option, the letters, the case's number."""
    prompts = load_prompts(condition.prompt_set)
    hidden = _hide_one(question, condition.seed)
    other = apply(Condition(option_order="seeded", seed=condition.seed), question)
    moved = next(letter for letter, original in other.letters.items() if original == hidden)
    asked = (
        prompts.hidden_option(question, hidden),
        prompts.hidden_option(other.question, moved),
        prompts.option_letters(other.question),
        prompts.case_number(question),
    )
    try:
        return _recollect(await ask.each(asked), hidden, other)
    except Unanswered as stop:
        return end(_recollect(stop.replies, hidden, other), stop) if stop.replies else end(Recalled(), stop)


def refuse_recall(condition: Condition) -> None:
    """Raise UsageError if the condition leaves nothing to remember, or would help."""
    if not condition.show_options or condition.option_order != "as_is":
        raise UsageError(
            "recall sets the order of the options itself",
            remedy="leave out --hide-options and --option-order",
        )
    if not condition.is_unaided or condition.samples > 1:
        raise UsageError("recall is asked once, without an expert's words", remedy="leave out the cues and --samples")


def _hide_one(question: Question, seed: int) -> str:
    """The letter of the option that is hidden: any of them, since the right one is not known here."""
    letters = list(question.options)
    return letters[seed_from("hidden option", seed, question.history, *question.options.values()) % len(letters)]


def _recollect(replies: Sequence[Reply | None], hidden: str, other: Shown) -> Recalled:
    """What the replies say, as far as each can be read."""
    read: tuple[Callable[[Reply], Any], ...] = (
        lambda reply: parse_text(reply, "option"),
        lambda reply: parse_text(reply, "option"),
        lambda reply: parse_letters(reply, list(other.letters)),
        parse_number,
    )
    parsed = [None if reply is None else parse(reply) for parse, reply in zip(read, replies, strict=True)]
    problems = [one.reason for one in parsed if isinstance(one, Unparsed)]
    option, reordered, letters, number = (None if isinstance(one, Unparsed) else one for one in parsed)
    return Recalled(
        state="unparsed" if problems else "ok",
        detail="; ".join(problems),
        recollection=Recollection(
            hidden=hidden,
            option=option and option.text,
            option_reordered=reordered and reordered.text,
            letters=letters and dict(sorted(zip(other.letters.values(), letters, strict=True))),
            number=number,
        ),
    )
