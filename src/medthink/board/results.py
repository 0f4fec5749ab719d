"""Scores of submissions, each read from the store once and kept compact, so that a board of hundreds fits in memory."""

import threading
from collections.abc import Iterable, Mapping

import msgspec
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.store import BoardStore
from medthink.scoring.scores import CaseScore, Scores

_AT_ONCE = 100


class BoardResult(msgspec.Struct, frozen=True, kw_only=True):
    """A submission's scores without case-by-case values, and the cases as plain columns.

    `cases`, `golds`, `rights`, `answers` and `states` are parallel; answers and states are those of the first sample.
    """

    scores: Scores
    cases: tuple[int, ...]
    golds: tuple[str, ...]
    rights: tuple[float, ...]
    answers: tuple[str | None, ...]
    states: tuple[str, ...]

    def with_cases(self, name: str) -> Scores:
        """The scores with their cases restored (first sample of each), under another name; enough to compare two."""
        columns = zip(self.cases, self.rights, self.states, self.answers, self.golds, strict=True)
        cases = tuple(
            CaseScore(case=case, right=right, states=(state,), letters=(answer,), gold=gold)
            for case, right, state, answer, gold in columns
        )
        origin = msgspec.structs.replace(self.scores.origin, name=name)
        return msgspec.structs.replace(self.scores, cases=cases, origin=origin)


class ScoreShelf:
    """A cache of scores, so that a board of hundreds of rows is not read again for each page."""

    def __init__(self, store: BoardStore) -> None:
        self._store = store
        self._kept: dict[tuple[int, str, str], BoardResult] = {}
        self._lock = threading.Lock()

    def read(self, numbers: Iterable[int], until: str | None = None) -> dict[int, BoardResult]:
        """The results of these submissions by their numbers, as they were known at a time."""
        newest = self._newest(set(numbers), until)
        with self._lock:
            missing = [key for key in newest.values() if key not in self._kept]
            for start in range(0, len(missing), _AT_ONCE):
                self._kept |= self._load(missing[start : start + _AT_ONCE])
            return {number: self._kept[key] for number, key in newest.items() if key in self._kept}

    def _newest(self, wanted: set[int], until: str | None) -> dict[int, tuple[int, str, str]]:
        table = tables.scores
        query = sa.select(table.c.submission_id, table.c.scorer, table.c.made_at).order_by(table.c.made_at)
        with self._store.read() as connection:
            rows = [tuple(row) for row in connection.execute(query) if row.submission_id in wanted]
        newest: dict[int, tuple[int, str, str]] = {}
        for number, scorer, made_at in rows:
            # The newest scores before that time count or, if there are none, the first ones made.
            if number not in newest or until is None or made_at <= until:
                newest[number] = (number, scorer, made_at)
        return newest

    def _load(self, keys: list[tuple[int, str, str]]) -> Mapping[tuple[int, str, str], BoardResult]:
        table = tables.scores
        columns = (table.c.submission_id, table.c.scorer, table.c.made_at, sa.cast(table.c.scores, sa.Text))
        query = sa.select(*columns).where(table.c.submission_id.in_([number for number, _, _ in keys]))
        wanted = set(keys)
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        return {
            (number, scorer, made_at): make_result(msgspec.json.decode(body, type=Scores))
            for number, scorer, made_at, body in rows
            if (number, scorer, made_at) in wanted
        }


def make_result(scores: Scores) -> BoardResult:
    """Scores in the form a board stores them."""
    steps = tuple(msgspec.structs.replace(step, case_values={}) for step in scores.steps)
    return BoardResult(
        scores=msgspec.structs.replace(scores, cases=(), steps=steps),
        cases=tuple(one.case for one in scores.cases),
        golds=tuple(one.gold for one in scores.cases),
        rights=tuple(one.right for one in scores.cases),
        answers=tuple(one.letters[0] if one.letters else None for one in scores.cases),
        states=tuple(one.states[0] if one.states else "failed" for one in scores.cases),
    )
