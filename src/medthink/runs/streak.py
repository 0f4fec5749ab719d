"""Detects failures that are not about single cases: the same one, case after case, with no answer in between."""

from collections.abc import Collection

from medthink.models.errors import ModelError

# Before the first answer the set-up is unproven; later a model may well reject a few cases in a row.
FIRST_CASES = 5
LATER_CASES = 20


class Streak:
    """Counts consecutive cases that failed in the same way.

    `failed_before` are cases that failed in earlier sessions of a run that has answers: if they fail again, that says
    nothing about the others.
    """

    def __init__(self, *, has_answers: bool = False, failed_before: Collection[int] = ()) -> None:
        self._has_answers = has_answers
        self._failed_before = frozenset(failed_before) if has_answers else frozenset()
        self._cases: set[int] = set()
        self._kind = ""

    def note_answer(self) -> None:
        """A case was answered: earlier failures concerned single cases."""
        self._has_answers = True
        self._cases.clear()

    def note_failure(self, case_id: int, error: ModelError) -> ModelError | None:
        """Count a failure; returns the error that ends the run if there are too many."""
        if case_id in self._failed_before:
            return None
        if error.kind != self._kind:
            self._kind = error.kind
            self._cases.clear()
        self._cases.add(case_id)
        if len(self._cases) < (LATER_CASES if self._has_answers else FIRST_CASES):
            return None
        which = f"{len(self._cases)} cases in a row" if self._has_answers else f"the first {len(self._cases)} cases"
        remedy = error.remedy or "fix the cause, then run the same command again: it continues from here"
        problem = f"{which} failed in the same way: {error.detail}"
        return ModelError(error.kind, problem, status=error.status, remedy=remedy)
