"""A published release that a build follows: its cases keep their number, split, options and letters.

A case is known by its number, and by the id that its source gives it. A release changes only where it must: where a
case is left out, or its source has changed. Every such change is listed, with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import NamedTuple

from medthink.cases.benchmark import Benchmark, fingerprint_texts
from medthink.cases.case import LETTERS, Case
from medthink.cases.check.texts import normalised_words
from medthink.cases.files.rows import row_from_case
from medthink.core.errors import DataError
from medthink.curate.decision import Decision
from medthink.curate.draft import Draft
from medthink.curate.names import name_key, short_form

SOURCE_ID = "source_id"
_QUESTION = ("options", "correct_answer", "correct_answer_text")
_BY_HAND = frozenset(("title", "image_count", *_QUESTION))


class Release:
    """The published cases by number; none, where a build follows no release."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.cases: dict[int, Case] = {} if path is None else _by_number(path)

    @cached_property
    def fingerprint(self) -> str:
        """The digest of its texts, "" for none."""
        return fingerprint_texts(self.cases.values()) if self.cases else ""

    def case_of(self, draft: Draft) -> Case | None:
        """The published form of the case, None for a new one; DataError if another case has its number."""
        found = self.cases.get(draft.id)
        if found is None:
            return None
        if not _is_same(found, draft):
            problem = f"case {draft.id} of the release has another history, other images and another diagnosis"
            remedy = "give published cases their numbers in the source's column `id`, and others new ones"
            raise DataError(problem, file=self.path, remedy=remedy)
        return found

    def options_of(self, draft: Draft) -> Case | None:
        """The published form of a case that has the published options; None if it is new or has others."""
        found = self.case_of(draft)
        if found is None or list(found.question.options) != list(LETTERS):
            return None
        own, known = draft.case, found
        is_same = sorted(own.question.options.values()) == sorted(known.question.options.values())
        return found if is_same and own.reference.answer_text == known.reference.answer_text else None

    def number_cases(self, source_ids: Iterable[str]) -> list[int]:
        """A number for each of these: the published one if its id was published, else its position if that is free."""
        known = {str(case.extra[SOURCE_ID]): case.id for case in self.cases.values() if case.extra.get(SOURCE_ID)}
        listed = list(source_ids)
        free = count(max([len(listed), *self.cases]) + 1)
        return [
            known[one] if one in known else place if place not in self.cases else next(free)
            for place, one in enumerate(listed, start=1)
        ]


def _is_same(published: Case, draft: Draft) -> bool:
    """Whether anything tells that it is the same case: its history, an image, or its diagnosis."""
    own, known = draft.case.question, published.question
    names = (draft.gold, draft.notes.diagnosis)
    keys = {name_key(form) for name in names for form in (name, short_form(name))}
    return (
        normalised_words(own.history) == normalised_words(known.history)
        or not {one.id for one in own.images}.isdisjoint(one.id for one in known.images)
        or name_key(published.reference.answer_text) in keys
    )


def _by_number(path: Path) -> dict[int, Case]:
    cases: dict[int, Case] = {}
    for case in Benchmark.open(path):
        if case.id in cases:
            raise DataError(f"two cases have the number {case.id}", file=path, remedy="medthink data check tells more")
        cases[case.id] = case
    return cases


class ReleaseChange(NamedTuple):
    """What is not as published in a case, and why."""

    case: int
    changed: str
    why: str


def list_changes(
    release: Release, drafts: Iterable[Draft], logs: Mapping[str, Iterator[Decision]]
) -> Iterator[ReleaseChange]:
    """Every difference between the published cases and these, by case and column."""
    said = _decisions_on(release.cases, logs)
    found = dict[int, list[ReleaseChange]]()
    for draft in drafts:
        if (published := release.cases.get(draft.id)) is not None:
            found[draft.id] = list(_differences(published, draft, said.get(draft.id, [])))
    for case in sorted(release.cases):
        yield from found.get(case, [ReleaseChange(case, "left out", _why_left_out(said.get(case, [])))])


def _decisions_on(cases: Mapping[int, Case], logs: Mapping[str, Iterator[Decision]]) -> dict[int, list[Decision]]:
    said = dict[int, list[Decision]]()
    for log in logs.values():
        for decision in log:
            if decision.case in cases:
                said.setdefault(decision.case, []).append(decision)
    return said


def _why_left_out(said: list[Decision]) -> str:
    if not said:
        return "it is not in the source"
    last = said[-1]
    state = "waits for a person" if last.verdict == "undecided" else "out"
    return ": ".join(part for part in (last.stage, state, last.reason, last.detail) if part)


def _differences(published: Case, draft: Draft, said: list[Decision]) -> Iterator[ReleaseChange]:
    if draft.notes.split and draft.notes.split != published.split:
        yield ReleaseChange(draft.id, "split", f"{published.split} → {draft.notes.split}")
    before, after = row_from_case(published), row_from_case(draft.case)
    if any(before.get(column) != after.get(column) for column in _QUESTION):
        yield ReleaseChange(draft.id, "options", _why_options(said))
    for column in dict.fromkeys([*before, *after]):
        # The path of an image follows from its id.
        is_compared = column not in _BY_HAND and column not in published.extra and not column.endswith("_path")
        if is_compared and (before.get(column) or "") != (after.get(column) or ""):
            yield ReleaseChange(draft.id, column, _why_column(column, said))


def _why_options(said: list[Decision]) -> str:
    return next((one.detail for one in said if one.stage == "balance" and one.detail), "the source gives others")


def _why_column(column: str, said: list[Decision]) -> str:
    makers = [one for one in said if any(change.field == column for change in one.changes)]
    return f"{makers[-1].stage}: {makers[-1].reason or makers[-1].by}" if makers else "it differs in the source"


NO_RELEASE = Release()
