"""The review sheet: every undecided case, and a seeded sample of what was decided automatically, for a person.

The sheet is a view of the journal (`rulings.py`), as a file for spreadsheets: people fill in `ruling` (in or out) and,
where the stage proposes a value, `value` for undecided cases; `is_right` (yes or no) for sampled ones. Whenever it is
read, what was filled in since goes into the journal, also during a build; only what a person changed counts, so a copy
that was saved late erases nothing. Then it is written again.
"""

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from medthink.core.clock import now_utc
from medthink.core.digest import seed_from
from medthink.core.errors import DataError, UsageError, suggest
from medthink.core.files import write_atomic
from medthink.core.markup import one_line
from medthink.core.tables import csv_text, read_raw, unescape_formula
from medthink.curate.decision import Decision
from medthink.curate.rulings import (
    CHECKS,
    JOURNAL,
    RULINGS,
    SAMPLE,
    UNDECIDED,
    Answer,
    JournalEntry,
    ReviewRow,
    Rulings,
    append_to_journal,
    check_id,
    hold_turn,
    read_journal,
)

SHEET = "review.csv"
_FILLED = Answer.__struct_fields__
COLUMNS = (*(name for name in ReviewRow.__struct_fields__ if name not in ("answer", "entry")), *_FILLED, "entry")
_LONGEST = 400
_BY_SHEET = "the sheet"


class OddCell(NamedTuple):
    """A cell of the sheet that cannot be used."""

    row: int
    case: str
    column: str
    problem: str
    remedy: str


class SheetState(NamedTuple):
    """How many cases wait for a ruling, and which cells cannot be used."""

    waiting: int
    odd: tuple[OddCell, ...]


def read_rulings(work: Path) -> Rulings:
    """What people decided so far in a work folder, the sheet included."""
    if not any((work / name).exists() for name in (SHEET, JOURNAL)):
        return Rulings()
    with hold_turn(work):
        return Rulings(_take_in(work)[1])


def read_rows(work: Path) -> list[ReviewRow]:
    """The rows of the sheet with every answer so far, undecided cases first."""
    with hold_turn(work):
        return _take_in(work)[0]


def answer_row(work: Path, question: str, answer: Answer, *, who: str, entry: int | None = None) -> bool:
    """Answer one question of the sheet; False if it is not asked any more.

    `entry` is that of the row which the person saw: UsageError if it was answered since.
    """
    with hold_turn(work):
        rows, journal = _take_in(work)
        asked = [row for row in rows if row.question == question]
        newer = next((row for row in asked if row.entry != entry and row.is_answered), None)
        if entry is not None and newer is not None:
            raise _answered_meanwhile(newer, journal)
        found = [replace(row, answer=answer) for row in asked]
        given = [JournalEntry(at=now_utc(), who=who, row=row) for row in found]
        append_to_journal(work, given)
        _write(work, _answered(rows, [*journal, *given]))
    return bool(found)


def _answered_meanwhile(row: ReviewRow, journal: list[JournalEntry]) -> UsageError:
    said = row.answer.ruling or row.answer.is_right
    who = journal[row.entry - 1].who
    return UsageError(
        f"case {row.case}, {row.stage}: answered {said!r} by {who} in the meantime; your answer is not stored",
        remedy=f"speak with {who}, or change the answer in {SHEET}",
    )


def write_review(work: Path, logs: dict[str, Iterator[Decision]], *, sample: int, seed: int) -> SheetState:
    """Write the sheet of these decisions, with every answer so far."""
    decisions = [one for log in logs.values() for one in _asked(log, sample, seed)]
    asked = {row.question: row for row in map(_row, decisions)}
    with hold_turn(work):
        journal = _take_in(work)[1]
        answered = {entry.row.question: entry.row for entry in journal}
        earlier = [row for key, row in answered.items() if key not in asked and row.answer != Answer()]
        rows = _answered(sorted([*asked.values(), *earlier], key=lambda row: not row.is_undecided), journal)
        _write(work, rows)
    odd = {one.question: one for one in decisions if one.odd}
    cells = [cell for number, row in enumerate(rows, start=2) for cell in _odd_cells(number, row, odd)]
    waiting = sum(row.is_undecided and (not row.is_answered or row.question in odd) for row in rows)
    return SheetState(waiting, tuple(cells))


def _odd_cells(number: int, row: ReviewRow, odd: dict[str, Decision]) -> Iterator[OddCell]:
    column, words = ("ruling", RULINGS) if row.is_undecided else ("is_right", CHECKS)
    text = str(getattr(row.answer, column))
    if text and text not in words:
        remedy = suggest(text, words, f"write {' or '.join(words)}")
        yield OddCell(number, row.case, column, f"{text!r} is not a valid answer", remedy)
    if row.is_undecided and row.answer.value and not row.answer.ruling:
        yield OddCell(number, row.case, "ruling", "a value without a ruling", "write in, or out")
    if row.question in odd:
        decision = odd[row.question]
        yield OddCell(number, row.case, "value", decision.odd, decision.remedy)


def _take_in(work: Path) -> tuple[list[ReviewRow], list[JournalEntry]]:
    """Put what was filled in since the sheet was written into the journal; the rows with all answers, the journal."""
    journal = read_journal(work)
    rows = list(_read_sheet(work / SHEET)) if (work / SHEET).exists() else []
    by_sheet = {entry.row.question: number for number, entry in enumerate(journal, 1) if entry.who == _BY_SHEET}
    found = []
    for row in rows:
        # What the row showed, or what was taken from the sheet since: anything else was typed by a person.
        base = max(row.entry, by_sheet.get(row.question, 0))
        shown = journal[base - 1].row.answer if 0 < base <= len(journal) else Answer()
        is_stale_blank = row.answer == Answer() and row.entry == 0
        if row.answer != shown and not is_stale_blank:
            found.append(JournalEntry(at=now_utc(), who=_BY_SHEET, row=row))
    append_to_journal(work, found)
    journal += found
    rows = _answered(rows, journal)
    if found:
        _write(work, rows)
    return rows, journal


def _answered(rows: Iterable[ReviewRow], journal: list[JournalEntry]) -> list[ReviewRow]:
    """The rows, each with the latest answer to its question."""
    latest = {entry.row.question: (number, entry.row.answer) for number, entry in enumerate(journal, start=1)}
    answers = ((row, *latest.get(row.question, (0, Answer()))) for row in rows)
    return [replace(row, answer=answer, entry=number) for row, number, answer in answers]


def _write(work: Path, rows: Iterable[ReviewRow]) -> None:
    write_atomic(work / SHEET, [_encode(rows)])


def _asked(decisions: Iterator[Decision], sample: int, seed: int) -> Iterator[Decision]:
    """The undecided ones, and a sample of those that no person made."""
    lots: list[tuple[int, int, Decision]] = []
    for decision in decisions:
        if decision.verdict == "undecided":
            yield decision
        elif decision.by != "person":
            lot = seed_from("review", seed, decision.stage, decision.case)
            # The lowest digests: the same cases are drawn however many others there are.
            heapq.heappush(lots, (-lot, decision.case, decision))
            if len(lots) > sample:
                heapq.heappop(lots)
    yield from (decision for _, _, decision in sorted(lots, key=lambda lot: lot[1]))


def _row(decision: Decision) -> ReviewRow:
    changes = (f"{one.field}: {one.before!r} → {one.after!r}" for one in decision.changes)
    is_undecided = decision.verdict == "undecided"
    return ReviewRow(
        question=decision.question if is_undecided else check_id(decision),
        stage=decision.stage,
        case=str(decision.case),
        asked=UNDECIDED if is_undecided else SAMPLE,
        verdict=decision.verdict,
        reason=decision.reason,
        by=decision.by,
        detail=one_line(decision.detail, _LONGEST),
        proposal=decision.proposal,
        evidence=one_line(" | ".join(f"{one.field}: {one.text}" for one in decision.evidence), _LONGEST),
        change=one_line(" | ".join(changes), _LONGEST),
        source_id=decision.source_id,
    )


def _encode(rows: Iterable[ReviewRow]) -> bytes:
    # With a byte-order mark, which spreadsheets need to see that it is UTF-8.
    return csv_text(COLUMNS, map(_cells, rows)).encode("utf-8-sig")


def _cells(row: ReviewRow) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(row)
    return {**plain, **plain["answer"], "entry": str(row.entry or "")}


def _read_sheet(path: Path) -> Iterator[ReviewRow]:
    for _, row in read_raw(path):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise DataError(f"columns are missing: {', '.join(missing)}", file=path, remedy="keep the sheet's columns")
        cells = {name: unescape_formula(row[name]).strip() for name in COLUMNS}
        entry = cells.pop("entry")
        filled = {name: cells.pop(name) for name in _FILLED}
        answer = Answer(**filled | {name: filled[name].lower() for name in ("ruling", "is_right")})
        yield ReviewRow(**cells, answer=answer, entry=int(entry) if entry.isdecimal() and entry.isascii() else 0)
