"""The training reward of a reply: for the letter and for the process, computed only from the expert's references.

Those texts alone decide what is compared: a reply cannot avoid a comparison by omitting a step, writing in another
language or stating nothing.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from medthink.cases.case import Case
from medthink.metrics.findings.agreement import compare_findings
from medthink.models.request import Reply
from medthink.workflow.ask import Unparsed
from medthink.workflow.parsing import parse_answer, parse_steps

RewardTask = Literal["answer", "twi"]
PROCESS_WEIGHT = 0.2


class RewardKey(msgspec.Struct, frozen=True, kw_only=True):
    """The reference of a reward, as plain data that can accompany a training example."""

    task: RewardTask
    answer: str
    options: dict[str, str]
    findings: tuple[str, ...]
    summary: str


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """A reply's rewards, each from 0 to 1; `process` is None if no expert text states a readable finding.

    A reply that commits to no answer earns nothing and has the state `unparsed`: it is not a wrong answer.
    """

    total: float
    letter: float
    process: float | None
    state: Literal["ok", "unparsed"] = "ok"
    detail: str = ""


def reward_key(case: Case, task: RewardTask) -> RewardKey:
    """The reward key of a case, with which replies are compared."""
    return RewardKey(
        task=task,
        answer=case.reference.answer,
        options=case.question.options,
        findings=tuple(image.caption for image in case.reference.images),
        summary=case.reference.findings,
    )


def reward(
    case: Case, reply: str | None, *, task: RewardTask | None = None, process_weight: float = PROCESS_WEIGHT
) -> Reward:
    """Reward a reply to a case; without a task, as a reply in three steps if it has any of them; None is no answer."""
    reply = reply or ""
    known = task or ("twi" if '"step1_per_image_findings"' in reply else "answer")
    return reward_by_key(reward_key(case, known), reply, process_weight=process_weight)


def reward_by_key(key: RewardKey, reply: str, *, process_weight: float = PROCESS_WEIGHT) -> Reward:
    """Reward a reply: one part for the right letter, the rest for agreement with the expert's findings."""
    read = _read_twi(key, reply) if key.task == "twi" else _read_answer(key, reply)
    if isinstance(read, Unparsed):
        return Reward(total=0.0, letter=0.0, process=None, state="unparsed", detail=read.reason)
    chosen, steps = read
    letter = float(chosen == key.answer)
    values = [value for pairs in steps if (value := _agreement(pairs)) is not None]
    if not values:
        return Reward(total=letter, letter=letter, process=None)
    process = sum(values) / len(values)
    return Reward(total=(1 - process_weight) * letter + process_weight * process, letter=letter, process=process)


# The letter chosen, and for each step pairs of an expert's text and the reply's.
_Read = tuple[str | None, list[list[tuple[str, str]]]]


def _read_answer(key: RewardKey, reply: str) -> _Read | Unparsed:
    choice = parse_answer(Reply(text=reply), key.options)
    return choice if isinstance(choice, Unparsed) else (choice.letter, [[(key.summary, choice.explanation)]])


def _read_twi(key: RewardKey, reply: str) -> _Read | Unparsed:
    steps = parse_steps(Reply(text=reply), key.options, len(key.findings))
    if isinstance(steps, Unparsed):
        return steps
    said = ("",) * len(key.findings) if steps.findings is None else tuple(text.text for text in steps.findings)
    summary = "" if steps.summary is None else steps.summary.text
    return steps.choice.letter, [list(zip(key.findings, said, strict=True)), [(key.summary, summary)]]


def _agreement(pairs: Sequence[tuple[str, str]]) -> float | None:
    """The mean finding F1 over the expert's texts that state anything; None if none does."""
    values = [
        compare_findings(expert, said).f1 or 0.0 for expert, said in pairs if compare_findings(expert, expert).reference
    ]
    return sum(values) / len(values) if values else None
