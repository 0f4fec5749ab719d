"""The review sheet: every undecided case, and a seeded sample of what was decided automatically, for a person.

The sheet is filled in in place: `ruling` (in or out) and, where the stage proposes a value, `value` for undecided
cases; `is_right` (yes or no) for sampled ones. The next build reads it, applies the rulings, and keeps every completed
row. A ruling applies to the case as it was then: if the case has changed since, it is asked again.
"""

import csv
import heapq
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from medthink.core.digest import seed_from
from medthink.core.errors import DataError, suggest
from medthink.core.files import write_atomic
from medthink.core.markup import one_line
from medthink.core.tables import escape_formula, read_raw, unescape_formula
from medthink.curate.decision import Decision
from medthink.runs.ledger.lock import lock_run
from medthink.stats.intervals import exact_upper_bound

COLUMNS = (
    "stage", "case", "asked", "verdict", "reason", "by", "detail", "proposal", "evidence", "change", "seen",
    "ruling", "value", "is_right", "note",
)  # fmt: skip
_FILLED = ("ruling", "value", "is_right", "note")
_UNDECIDED, _SAMPLE = "decide", "check"
_LONGEST = 400


class HumanDecision(NamedTuple):
    """A person's ruling on an undecided case."""

    verdict: Literal["in", "out"]
    value: str
    note: str


class StageErrors(msgspec.Struct, frozen=True, kw_only=True):
    """How many automatic decisions of a stage people checked, how many were wrong, and the bound on the error rate."""

    stage: str
    checked: int
    wrong: int
    bound: float


class HumanDecisions:
    """The rows of a review sheet, by stage, case and what the stage saw."""

    def __init__(self, rows: Iterable[dict[str, str]] = ()) -> None:
        self._rows = {(row["stage"], row["case"], row["seen"]): row for row in rows}

    @classmethod
    def read(cls, path: Path) -> "HumanDecisions":
        """The sheet at this path, or an empty one."""
        return cls(_read_sheet(path)) if path.exists() else cls()

    def find(self, stage: str, case: int, seen: str) -> HumanDecision | None:
        """The ruling on exactly this state of a case."""
        row = self._rows.get((stage, str(case), seen))
        if row is None or not row["ruling"]:
            return None
        return HumanDecision("in" if row["ruling"] == "in" else "out", row["value"], row["note"])

    def of_stage(self, stage: str) -> list[list[str]]:
        """Every ruling on a stage, as plain data."""
        return sorted(
            [*key, row["ruling"], row["value"]] for key, row in self._rows.items() if key[0] == stage and row["ruling"]
        )

    def filled(self) -> dict[tuple[str, str, str], dict[str, str]]:
        """The completed rows."""
        return {key: row for key, row in self._rows.items() if any(row[name] for name in _FILLED)}

    def errors(self) -> list[StageErrors]:
        """The result of the checks of each stage, with an exact 95 % bound on its error rate."""
        checked = [row for row in self._rows.values() if row["is_right"]]
        found = []
        for stage in dict.fromkeys(row["stage"] for row in checked):
            answers = [row["is_right"] for row in checked if row["stage"] == stage]
            wrong = answers.count("no")
            bound = exact_upper_bound(wrong, len(answers))
            found.append(StageErrors(stage=stage, checked=len(answers), wrong=wrong, bound=bound))
        return found


class ReviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a sheet: the question about a case, the grounds, and a person's answer."""

    stage: str
    case: str
    seen: str
    asked: str
    verdict: str
    reason: str
    by: str
    detail: str
    proposal: str
    evidence: str
    change: str
    ruling: str = ""
    value: str = ""
    is_right: str = ""
    note: str = ""

    @property
    def is_undecided(self) -> bool:
        """Whether a ruling is needed; otherwise the question is whether the automatic decision is right."""
        return self.asked == _UNDECIDED

    @property
    def is_answered(self) -> bool:
        """Whether it has been answered."""
        return bool(self.ruling if self.is_undecided else self.is_right)


def read_rows(path: Path) -> list[ReviewRow]:
    """The rows of a sheet, undecided cases first."""
    return [msgspec.convert(row, ReviewRow) for row in _read_sheet(path)]


def answer_row(path: Path, key: tuple[str, str, str], answer: dict[str, str]) -> bool:
    """Fill in one row (stage, case, what the stage saw) of a sheet; False if the row no longer exists.

    The work folder is locked meanwhile, so several people and a build cannot overwrite each other.
    """
    strange = set(answer) - set(_FILLED)
    if strange:
        raise ValueError(f"no column to fill in: {', '.join(sorted(strange))}")
    with lock_run(path.parent):
        rows = list(_read_sheet(path))
        found = [row for row in rows if _key(row) == key]
        for row in found:
            row |= {name: text.strip() for name, text in answer.items()}
        if found:
            write_atomic(path, [_encode(rows)])
    return bool(found)


def write_review(
    path: Path, logs: dict[str, Iterator[Decision]], *, sample: int, seed: int, rulings: HumanDecisions
) -> int:
    """Write the sheet, keeping what is filled in; returns how many cases wait for a ruling."""
    filled = rulings.filled()
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for decisions in logs.values():
        for row in _rows_of_stage(decisions, sample, seed):
            rows[_key(row)] = row
    for key, row in filled.items():
        rows[key] = rows.get(key, row) | {name: row[name] for name in _FILLED}
    ordered = sorted(rows.values(), key=lambda row: row["asked"] != _UNDECIDED)
    write_atomic(path, [_encode(ordered)])
    return sum(row["asked"] == _UNDECIDED and not row["ruling"] for row in ordered)


def _rows_of_stage(decisions: Iterator[Decision], sample: int, seed: int) -> Iterator[dict[str, str]]:
    lots: list[tuple[int, int, Decision]] = []
    for decision in decisions:
        if decision.verdict == "undecided":
            yield _row(decision, _UNDECIDED)
        elif decision.by != "person":
            lot = seed_from("review", seed, decision.stage, decision.case)
            # The lowest digests: the same cases are drawn however many others there are.
            heapq.heappush(lots, (-lot, decision.case, decision))
            if len(lots) > sample:
                heapq.heappop(lots)
    yield from (_row(decision, _SAMPLE) for _, _, decision in sorted(lots, key=lambda lot: lot[1]))


def _row(decision: Decision, asked: str) -> dict[str, str]:
    changes = (f"{one.field}: {one.before!r} → {one.after!r}" for one in decision.changes)
    return {
        "stage": decision.stage,
        "case": str(decision.case),
        "asked": asked,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "by": decision.by,
        "detail": one_line(decision.detail, _LONGEST),
        "proposal": decision.proposal,
        "evidence": one_line(" | ".join(f"{one.field}: {one.text}" for one in decision.evidence), _LONGEST),
        "change": one_line(" | ".join(changes), _LONGEST),
        "seen": decision.seen,
    } | dict.fromkeys(_FILLED, "")


def _key(row: dict[str, str]) -> tuple[str, str, str]:
    return row["stage"], row["case"], row["seen"]


def _encode(rows: Iterable[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: escape_formula(value) for name, value in row.items()} for row in rows)
    # With a byte-order mark, which spreadsheets need to see that it is UTF-8.
    return text.getvalue().encode("utf-8-sig")


def _read_sheet(path: Path) -> Iterator[dict[str, str]]:
    for number, row in read_raw(path):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise DataError(f"columns are missing: {', '.join(missing)}", file=path, remedy="keep the sheet's columns")
        plain = {name: unescape_formula(row[name]).strip() for name in COLUMNS}
        for name, words in (("ruling", ("in", "out")), ("is_right", ("yes", "no"))):
            plain[name] = plain[name].lower()
            if plain[name] not in ("", *words):
                remedy = suggest(plain[name], words, f"write {' or '.join(words)}")
                raise DataError(
                    f"{plain[name]!r} is not a valid answer", file=path, row=number, field=name, remedy=remedy
                )
        yield plain
