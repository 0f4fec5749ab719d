"""Discussions in a judge's own words, to measure its self-preference. `rewordings.jsonl`."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import msgspec

from medthink.cases.case import Case
from medthink.core.digest import digest_value
from medthink.core.jsonio import write_jsonl
from medthink.core.stored import read_stored_rows
from medthink.judge.asking import Hearing
from medthink.judge.exam.making import pair_sheets
from medthink.judge.exam.sheets import ExamSheet
from medthink.judge.prompts import reword_prompt
from medthink.judge.units import Source
from medthink.judge.verdicts import Unjudged
from medthink.workflow.forms import Fault, ReplyForm, read_form

REWORDINGS_FILE = "rewordings.jsonl"
# Sheets of rewordings are numbered from here, above those of any exam.
_FIRST_NUMBER = 1_000_000
_KEPT = re.compile(r"\d+(?:\.\d+)?|\b(?:left|right)\b", re.IGNORECASE)
_LENGTHS = (0.5, 2.0)


class Rewording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A discussion in the words of a judge."""

    author: str
    case: int
    text: str


class RewordForm(ReplyForm, frozen=True):
    """The text of a reply."""

    text: str


async def reword_case(hearing: Hearing, case: Case) -> Rewording | Unjudged:
    """Ask a judge to write a case's discussion in its own words."""
    text = case.reference.discussion.strip()
    source = Source(run="exam", case=case.id, sample=0, what="reword", parts={"text": text})
    prompt = reword_prompt(source)

    def read(reply: str) -> str | Fault:
        form = read_form(reply, RewordForm, prompt.call)
        return form if isinstance(form, Fault) else _check(form.text.strip(), text)

    heard = await hearing.hear(prompt, read, case_id=case.id, repeat=0)
    if isinstance(heard.result, Unjudged):
        return heard.result
    return Rewording(author=hearing.desk.answerer.spec, case=case.id, text=heard.result)


def _check(text: str, original: str) -> str | Fault:
    """The text, or why it does not say the same: numbers and sides must stay, and the length must be similar."""
    if not _LENGTHS[0] <= len(text) / len(original) <= _LENGTHS[1]:
        return Fault("wrong_form", "the text must be about as long as the one given")
    if _count(text) != _count(original):
        return Fault("wrong_form", "every number and side of the text must be kept, and none added")
    return text


def _count(text: str) -> Counter[str]:
    return Counter(found.lower() for found in _KEPT.findall(text))


def own_sheets(rewordings: Iterable[Rewording], cases: dict[int, Case]) -> Iterator[ExamSheet]:
    """Each rewording beside the expert's text, in both orders."""
    for one in rewordings:
        start = _FIRST_NUMBER + 2 * int(digest_value([one.author, one.case])[:7], 16)
        text = cases[one.case].reference.discussion.strip()
        yield from pair_sheets(count(start), one.case, text, one.text, contender=one.author)


def read_rewordings(exam: Path) -> dict[tuple[str, int], Rewording]:
    """The rewordings of every judge that sat the exam, by judge and case."""
    remedy = "delete the row to have it made again"
    found = read_stored_rows(exam / REWORDINGS_FILE, Rewording, name="a rewording", remedy=remedy)
    return {(one.author, one.case): one for one in found}


def write_rewordings(exam: Path, rewordings: dict[tuple[str, int], Rewording]) -> None:
    """Keep the rewordings, by judge and case."""
    if rewordings:
        write_jsonl(exam / REWORDINGS_FILE, (msgspec.to_builtins(rewordings[key]) for key in sorted(rewordings)))
