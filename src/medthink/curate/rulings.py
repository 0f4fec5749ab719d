"""What people decided: an append-only journal, and the answers that a stage sees of it.

Every undecided case is a *question*: its id covers what the stage looked at, the reason and the grounds. An answer
settles that question and no other: a stage that continues after it asks whatever else it has to ask. An answer is never
overwritten; a later one to the same question is added to the journal, and the latest applies.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from medthink.core.digest import digest_value
from medthink.core.errors import DataError
from medthink.curate.decision import Decision, StageResult
from medthink.stats.intervals import exact_upper_bound

JOURNAL = "rulings.jsonl"
RULINGS, CHECKS = ("in", "out"), ("yes", "no")
_LOCK = ".rulings.lock"
_HAS_LOCKS = find_spec("fcntl") is not None
UNDECIDED, SAMPLE = "decide", "check"
Value = TypeVar("Value")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person filled in for one question, word for word."""

    ruling: str = ""
    value: str = ""
    is_right: str = ""
    note: str = ""


class ReviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the review sheet: the question about a case, the grounds, and the latest answer.

    `entry` is the number of the journal's line that the answer comes from, 0 if there is none.
    """

    question: str
    stage: str
    case: str
    asked: str
    verdict: str
    reason: str
    by: str
    detail: str
    proposal: str
    evidence: str
    change: str
    source_id: str = ""
    answer: Answer = Answer()
    entry: int = 0

    @property
    def is_undecided(self) -> bool:
        """Whether a decision is needed; otherwise the question is whether the automatic decision is right."""
        return self.asked == UNDECIDED

    @property
    def is_answered(self) -> bool:
        """Whether it has an answer that can be used."""
        return self.answer.ruling in RULINGS if self.is_undecided else self.answer.is_right in CHECKS


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: when, by whom, and the row as it was answered."""

    at: str
    who: str
    row: ReviewRow


class StageErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Automatic decisions of a stage that people checked, those that were wrong, and the bound on the error rate."""

    stage: str
    checked: int
    wrong: int
    bound: float


@contextmanager
def hold_turn(work: Path) -> Iterator[None]:
    """Wait for the turn to write answers in this work folder: milliseconds, also while a build runs."""
    if not _HAS_LOCKS:
        yield
        return
    import fcntl

    handle = os.open(work / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_journal(work: Path) -> list[JournalEntry]:
    """Every answer so far, the oldest first; a last line that was cut off was never acknowledged."""
    path = work / JOURNAL
    data = path.read_bytes() if path.exists() else b""
    entries = []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n")[:-1], start=1):
        try:
            entries.append(msgspec.json.decode(line, type=JournalEntry))
        except msgspec.DecodeError as error:
            remedy = "restore the file from a backup; it is only ever appended to"
            raise DataError(f"not an answer: {error}", file=path, row=number, remedy=remedy) from None
    return entries


def append_to_journal(work: Path, entries: Iterable[JournalEntry]) -> None:
    """Add answers to the journal; the caller has the turn."""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    if not lines:
        return
    with (work / JOURNAL).open("a+b") as stream:
        stream.seek(0)
        stream.truncate(stream.read().rfind(b"\n") + 1)
        stream.write(lines)
        stream.flush()
        os.fsync(stream.fileno())


def question_id(stage: str, case: int, seen: str, question: StageResult) -> str:
    """The id of a question: other grounds, or a change of what the stage looked at, make it another question."""
    quotes = [[one.field, one.start, one.end, one.text] for one in question.evidence]
    return _id_of([stage, case, seen, question.reason, question.detail, question.proposal, quotes])


def check_id(decision: Decision) -> str:
    """The id of the question whether an automatic decision is right."""
    plain = msgspec.to_builtins(decision)
    return _id_of([SAMPLE, *(plain.get(name) for name in ("stage", "case", "seen", "verdict", "reason", "changes"))])


def _id_of(parts: list[object]) -> str:
    # A letter in front: a spreadsheet would read some digests as numbers.
    return f"q{digest_value(parts)[:15]}"


class Held(Exception):
    """A question that nobody has answered yet, or whose answer cannot be used; `result` holds the case."""

    def __init__(self, result: StageResult) -> None:
        super().__init__(result.reason)
        self.result = result


class RuledOut(Exception):
    """A person ruled the case out."""

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note


class CaseRulings:
    """The answers to a stage's questions about one case in one state; `used` are those that were asked for."""

    def __init__(self, stage: str, case: int, seen: str, answers: dict[str, Answer]) -> None:
        self._key = (stage, case, seen)
        self._answers = answers
        self.used: list[Answer] = []

    def settle(self, question: StageResult) -> None:
        """Return if a person let the case in here; else raise `Held` or `RuledOut`, which must not be caught."""
        self.value_of(question, _no_value)

    def value_of(self, question: StageResult, read: Callable[[str], Value]) -> Value:
        """The value a person gave, as `read` understands it; it raises DataError for one that was not asked for.

        Who lets the case in and names no value agrees with the one proposed.
        """
        asked = question_id(*self._key, question)
        held = replace(question, question=asked)
        answer = self._answers.get(asked)
        if answer is None or not answer.ruling:
            raise Held(held)
        if answer.ruling == "out":
            raise RuledOut(answer.note)
        if answer.ruling != "in":
            raise Held(held)
        try:
            value = read(answer.value or question.proposal)
        except DataError as error:
            raise Held(replace(held, odd=error.problem, remedy=error.remedy)) from None
        self.used.append(answer)
        return value


def _no_value(value: str) -> None:
    if value:
        raise DataError(f"no value was asked for, found {value!r}", remedy="leave `value` empty")


class Rulings:
    """The latest answer to every question."""

    def __init__(self, entries: Iterable[JournalEntry] = ()) -> None:
        self._rows = {entry.row.question: entry.row for entry in entries}
        self._answers: dict[str, dict[str, Answer]] = {}
        for row in self._rows.values():
            self._answers.setdefault(row.stage, {})[row.question] = row.answer

    def of_case(self, stage: str, case: int, seen: str) -> CaseRulings:
        """The answers that a stage sees when it decides on this state of a case."""
        return CaseRulings(stage, case, seen, self._answers.get(stage, {}))

    def of_stage(self, stage: str) -> list[list[str]]:
        """Every decision on a stage, as plain data."""
        answers = self._answers.get(stage, {})
        return sorted([key, one.ruling, one.value, one.note] for key, one in answers.items() if one.ruling)

    def errors(self) -> list[StageErrors]:
        """The result of the checks of each stage, with an exact 95 % bound on its error rate."""
        checked = [row for row in self._rows.values() if row.answer.is_right in CHECKS]
        found = []
        # By name: the order in which people answered shows nowhere.
        for stage in sorted({row.stage for row in checked}):
            answers = [row.answer.is_right for row in checked if row.stage == stage]
            wrong = answers.count("no")
            bound = exact_upper_bound(wrong, len(answers))
            found.append(StageErrors(stage=stage, checked=len(answers), wrong=wrong, bound=bound))
        return found
