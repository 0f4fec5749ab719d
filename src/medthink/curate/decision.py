"""Decisions: what a stage decided about a case, the rule or model, the evidence, and the changes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from medthink.core.jsonio import read_stored_rows
from medthink.curate.draft import CURATION, Draft, text_of

Verdict = Literal["in", "changed", "out", "undecided"]
CALL_FAILED, NOT_ASKED = "call-failed", "not-asked"
# A re-run may resolve these by itself; all other undecided cases wait for review.
UNFINISHED = frozenset({CALL_FAILED, NOT_ASKED})


class Quote(msgspec.Struct, frozen=True):
    """A passage that a decision is based on: `text` is in the column `field` from `start` to `end`."""

    field: str
    start: int
    end: int
    text: str

    def is_in(self, draft: Draft) -> bool:
        """Whether the passage is where the quote says it is."""
        return bool(self.text) and text_of(draft, self.field)[self.start : self.end] == self.text


class FieldChange(msgspec.Struct, frozen=True):
    """A column before and after; notes are named `curation.NAME`."""

    field: str
    before: Any
    after: Any


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a stage's log.

    `reason` is a short code used for counting, `by` the rule, model or person, `detail` an explanation, `proposal` the
    value that the stage suggests to a person. `seen` is the digest of what the stage looked at. An undecided case
    has the id of its `question`; `odd` says why a person's answer to it cannot be used. `source_id` is the case's id in
    the source.
    """

    case: int
    stage: str
    verdict: Verdict
    reason: str = ""
    by: str = ""
    detail: str = ""
    proposal: str = ""
    evidence: tuple[Quote, ...] = ()
    changes: tuple[FieldChange, ...] = ()
    seen: str = ""
    question: str = ""
    odd: str = ""
    remedy: str = ""
    source_id: str = ""


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """A stage's result for a draft: the draft to continue with (None if it leaves the build), and the reason."""

    draft: Draft | None
    is_undecided: bool = False
    reason: str = ""
    by: str = ""
    detail: str = ""
    proposal: str = ""
    evidence: tuple[Quote, ...] = ()
    question: str = ""
    odd: str = ""
    remedy: str = ""


def pass_case(
    draft: Draft, *, reason: str = "", by: str = "rule", detail: str = "", evidence: Iterable[Quote] = ()
) -> StageResult:
    """Continue with the draft, changed or not."""
    return StageResult(draft=draft, reason=reason, by=by, detail=detail, evidence=tuple(evidence))


def drop_case(reason: str, *, by: str = "rule", detail: str = "", evidence: Iterable[Quote] = ()) -> StageResult:
    """Leave the case out."""
    return StageResult(draft=None, reason=reason, by=by, detail=detail, evidence=tuple(evidence))


def hold_case(
    reason: str, *, by: str = "rule", detail: str = "", proposal: str = "", evidence: Iterable[Quote] = ()
) -> StageResult:
    """The question that holds the case until someone answers it: `rulings.settle` continues where someone did."""
    return StageResult(
        draft=None, is_undecided=True, reason=reason, by=by, detail=detail, proposal=proposal, evidence=tuple(evidence)
    )


def find_quote(draft: Draft, field: str, text: str) -> Quote | None:
    """The position of a passage that occurs verbatim in a column, or None."""
    start = text_of(draft, field).find(text) if text else -1
    return None if start < 0 else Quote(field, start, start + len(text), text)


def changes_between(before: Draft, after: Draft) -> tuple[FieldChange, ...]:
    """Every column and note that differs."""
    old, new = _flat(before), _flat(after)
    return tuple(
        FieldChange(field, old.get(field), new.get(field))
        for field in dict.fromkeys([*old, *new])
        if old.get(field) != new.get(field)
    )


def read_decisions(path: Path) -> Iterator[Decision]:
    """Stream a stage's log."""
    return read_stored_rows(path, Decision, name="a decision", remedy="run the stage again", may_lack=False)


class StageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of cases a stage saw and their outcomes; the four parts add up to `seen`."""

    seen: int
    kept: int
    changed: int
    out: int
    undecided: int
    unfinished: int
    reasons: dict[str, dict[str, int]]

    @property
    def passed(self) -> int:
        """The number of cases passed to the next stage."""
        return self.kept + self.changed


class Tally:
    """Counts decisions as they are made."""

    def __init__(self) -> None:
        self._verdicts: Counter[Verdict] = Counter()
        self._reasons: dict[str, Counter[str]] = {}
        self._unfinished = 0

    def add(self, decision: Decision) -> None:
        """Count one decision."""
        self._verdicts[decision.verdict] += 1
        self._unfinished += decision.verdict == "undecided" and decision.reason in UNFINISHED
        if decision.reason:
            self._reasons.setdefault(decision.verdict, Counter())[decision.reason] += 1

    def counts(self) -> StageCounts:
        """The counts so far."""
        return StageCounts(
            seen=self._verdicts.total(),
            kept=self._verdicts["in"],
            changed=self._verdicts["changed"],
            out=self._verdicts["out"],
            undecided=self._verdicts["undecided"],
            unfinished=self._unfinished,
            reasons={verdict: dict(counter.most_common()) for verdict, counter in sorted(self._reasons.items())},
        )


def _flat(draft: Draft) -> dict[str, Any]:
    row = draft.row()
    notes = row.pop(CURATION)
    return row | {f"{CURATION}.{name}": value for name, value in notes.items()}
