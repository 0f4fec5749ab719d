"""The columns that can be added to the leaderboard: one entry each, or one for every slice and metric."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import msgspec

from medthink.board.ranking import BoardRow
from medthink.board.submissions import LEVELS, Provenance
from medthink.core.numbers import as_count, as_percent
from medthink.metrics.answers import Total
from medthink.metrics.registry import shown_in
from medthink.report.tables import metric_value
from medthink.scoring.scores import SliceScore, informative_slices
from medthink.stats.estimate import Estimate, Measured, Undefined
from medthink.web.app.query import Query
from medthink.web.app.rendering import NONE, tell_difference, tell_ends, tell_money
from medthink.workflow.condition import FIELDS, Condition
from medthink.workflow.tasks import TASKS, default_condition, known_texts

_DAY = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")

NO_COLUMNS = "-"
"""The value in URLs for a table without additional columns."""


class BoardQuery(Query, frozen=True, kw_only=True):
    """`ranking` is the ranking shown, `proof` the minimum level; `col` the additional columns.

    No `col` means the default columns. `rows` is "all" for a table without paging.
    """

    ranking: str = ""
    proof: str = ""
    as_of: str = ""
    weights: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    col: tuple[str, ...] = ()
    page: str = ""
    rows: str = ""

    @property
    def day(self) -> str | None:
        """The day, or the second, as of which the board is shown; None for now, or if it is not a date."""
        return self.as_of if _DAY.fullmatch(self.as_of) else None


PROOF_WORDS: dict[Provenance, str] = {
    "reported": "Reported",
    "scored": "Scored by us",
    "traced": "With traces",
    "rerun": "Partly re-run",
    "ledger": "Our run",
}
RIVAL_WORDS = {
    "guesser:options": "options-only guesser",
    "guesser:question": "history-and-options guesser",
    "own run without images": "own run, no images",
}
Tone = Literal["", "up", "down", "even", "faint"]
"""Tones: a difference shown to be positive, negative or neither; de-emphasised."""
SortKey = float | str | None
TokenKind = Literal["input_tokens", "output_tokens"]


class BoardCell(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of one cell; `level` draws the provenance marks."""

    text: str
    under: str = ""
    tone: Tone = ""
    level: int | None = None


class BoardColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column: its name in URLs, its heading, its menu entry, its contents, and its sort key.

    `order` is None for a column that cannot be sorted; rows without a value always come last.
    """

    key: str
    head: str
    words: str
    group: str
    cell: Callable[[BoardRow], BoardCell]
    order: Callable[[BoardRow], SortKey] | None
    is_usual: bool = False
    is_number: bool = True
    first_down: bool = True
    shrinks: str = "at-3"


def board_columns(rows: Sequence[BoardRow]) -> dict[str, BoardColumn]:
    """Every column with data for these rows, by key, in menu order."""
    made = [*_FIXED, *_metric_columns(rows), *_slice_columns(rows)]
    return {column.key: column for column in made}


def chosen_columns(known: dict[str, BoardColumn], query: BoardQuery) -> list[BoardColumn]:
    """The requested columns, or the default ones."""
    if not query.col:
        return [column for column in known.values() if column.is_usual]
    return [known[key] for key in query.col if key != NO_COLUMNS and key in known]


def sort_rows(rows: Sequence[BoardRow], known: dict[str, BoardColumn], query: BoardQuery) -> list[BoardRow]:
    """The rows in the requested order, by default that of the ranking; rows without a value come last."""
    order = _ORDERS.get(query.sort) or (known[query.sort].order if query.sort in known else None)
    if order is None:
        return list(reversed(rows)) if query.sort == "rank" and query.down else list(rows)
    keyed = [(order(row), row) for row in rows]
    having = [pair for pair in keyed if pair[0] is not None]
    lacking = [row for key, row in keyed if key is None]
    return [row for _, row in sorted(having, key=_first, reverse=bool(query.down))] + lacking


def _first(pair: tuple[SortKey, BoardRow]) -> tuple[bool, SortKey]:
    return (isinstance(pair[0], str), pair[0])


def rival_name(name: str) -> str:
    """A rival's name in a table."""
    return RIVAL_WORDS.get(name, name)


def accuracy_of(row: BoardRow) -> Measured:
    """The headline of a row."""
    answers = row.scores.answers
    return answers.accuracy if answers else Undefined(reason="no letters", n=0)


def usd_per_case(row: BoardRow) -> float | None:
    """The cost per case, if completely known."""
    return row.scores.usage.cost_usd.per(len(row.result.cases)) if row.scores.usage else None


def _tokens(kind: TokenKind, row: BoardRow) -> float | None:
    total: Total | None = getattr(row.scores.usage, kind, None)
    return total.per(len(row.result.cases)) if total else None


def _gain(row: BoardRow) -> BoardCell:
    if row.gain is None:
        return BoardCell(text=NONE, tone="faint")
    told = tell_difference(row.gain.gain)
    rival = row.gain.rival_accuracy.value or 0.0
    tone: Tone = "up" if told.tone == "up" else "down" if told.tone == "down" else "even"
    ends = told.interval.strip("()")
    return BoardCell(text=told.value, under=f"{ends}\n{rival_name(row.gain.rival)}, {rival * 100:.1f}", tone=tone)


def _cost(row: BoardRow) -> BoardCell:
    tokens = _tokens("output_tokens", row)
    return BoardCell(text=tell_money(usd_per_case(row)), under="" if tokens is None else f"{as_count(tokens)} tokens")


def _proof(row: BoardRow) -> BoardCell:
    level = row.submission.provenance
    under = ""
    if row.rerun:
        under = f"{row.rerun.same} of {row.rerun.cases} the same"
    return BoardCell(text=PROOF_WORDS[level], under=under, level=LEVELS.index(level))


def _condition(row: BoardRow) -> BoardCell:
    origin, about = row.scores.origin, row.submission.about
    if origin.condition is None or origin.task not in TASKS:
        return BoardCell(text=about.mode or "as submitted")
    condition, usual = msgspec.convert(origin.condition, Condition), default_condition(origin.task)
    unusual = [
        field.say(getattr(condition, field.name))
        for field in FIELDS
        if field.name != "effort" and getattr(condition, field.name) != getattr(usual, field.name)
    ]
    return BoardCell(text=origin.task, under=", ".join(unusual) or "all images")


def _judged(row: BoardRow) -> BoardCell:
    profile = row.judged.leading if row.judged else None
    if profile is None or profile.wrong_critical_steps.value is None:
        return BoardCell(text=NONE, tone="faint")
    share = as_percent(profile.wrong_critical_steps.value)
    under = "smoke test" if profile.is_smoke_test else profile.judge
    return BoardCell(text=share, under=under)


def _judged_order(row: BoardRow) -> SortKey:
    profile = row.judged.leading if row.judged else None
    return profile.wrong_critical_steps.value if profile else None


def _silent(row: BoardRow) -> int:
    states = row.scores.answers.states if row.scores.answers else {}
    return sum(count for state, count in states.items() if state != "ok")


def _count_tokens(kind: TokenKind, row: BoardRow) -> BoardCell:
    found = _tokens(kind, row)
    return BoardCell(text=as_count(found), under="" if found is None else "per case")


_FIXED: tuple[BoardColumn, ...] = (
    BoardColumn(
        key="gain", head="Gain over strongest rival", words="Gain over the strongest rival", group="Main",
        cell=_gain, order=lambda row: row.gain.gain.value if row.gain else None, is_usual=True, is_number=False,
        shrinks="at-2",
    ),
    BoardColumn(
        key="proof", head="Proof", words="Proof", group="Main", cell=_proof,
        order=lambda row: LEVELS.index(row.submission.provenance), is_usual=True, is_number=False, shrinks="at-2",
    ),
    BoardColumn(
        key="cost", head="Per case", words="Price and output tokens per case", group="Main", cell=_cost,
        order=usd_per_case, is_usual=True, first_down=False, shrinks="at-2",
    ),
    BoardColumn(
        key="condition", head="Condition", words="Condition", group="Main", cell=_condition,
        order=lambda row: row.scores.origin.condition_label, is_usual=True, is_number=False, first_down=False,
    ),
    BoardColumn(
        key="output", head="Tokens out", words="Output tokens per case", group="Main",
        cell=partial(_count_tokens, "output_tokens"), order=partial(_tokens, "output_tokens"), first_down=False,
    ),
    BoardColumn(
        key="input", head="Tokens in", words="Input tokens per case", group="Main",
        cell=partial(_count_tokens, "input_tokens"), order=partial(_tokens, "input_tokens"), first_down=False,
    ),
    BoardColumn(
        key="silent", head="No letter", words="Cases without a letter", group="Main",
        cell=lambda row: BoardCell(text=str(_silent(row)), under="counted as wrong" if _silent(row) else ""),
        order=lambda row: _silent(row), first_down=False,
    ),
    BoardColumn(
        key="team", head="By the team", words="Submissions by the same team", group="Main",
        cell=lambda row: BoardCell(text=str(row.by_team)), order=lambda row: row.by_team,
    ),
    BoardColumn(
        key="family", head="Of the family", words="Submissions of the same family", group="Main",
        cell=lambda row: BoardCell(text=str(row.by_family)), order=lambda row: row.by_family,
    ),
    BoardColumn(
        key="published", head="Published", words="Day of publication", group="Main", is_number=False,
        cell=lambda row: BoardCell(text=(row.submission.published_at or "")[:10]),
        order=lambda row: row.submission.published_at,
    ),
    BoardColumn(
        key="judged", head="Wrong critical steps", words="Wrong critical steps, as judged", group="Reasoning",
        cell=_judged, order=_judged_order, first_down=False,
    ),
)  # fmt: skip
_ORDERS: dict[str, Callable[[BoardRow], SortKey]] = {
    "model": lambda row: row.submission.model.casefold(),
    "accuracy": lambda row: accuracy_of(row).value,
}


def _metric_columns(rows: Sequence[BoardRow]) -> Iterator[BoardColumn]:
    """A column for each metric of steps 1 and 2 that some row has."""
    known = {(step.step, one.metric) for row in rows for step in row.scores.steps for one in step.metrics if one.value}
    for text in known_texts().values():
        for metric in shown_in("tables"):
            if (text.name, metric.name) in known:
                words = f"{text.title.partition(':')[0]}, {metric.label or metric.name}"
                yield BoardColumn(
                    key=f"{text.name}.{metric.name}",
                    head=words,
                    words=words,
                    group="Reasoning",
                    cell=partial(_metric_cell, text.name, metric.name),
                    order=partial(_metric_order, text.name, metric.name),
                    first_down=metric.direction != "lower",
                )


def _metric_cell(step: str, metric: str, row: BoardRow) -> BoardCell:
    found = metric_value(row.scores, step, metric)
    if found is None or found.value is None:
        return BoardCell(text=NONE, tone="faint")
    ends = f"{found.low:.3f}–{found.high:.3f}" if isinstance(found, Estimate) else "no interval"
    return BoardCell(text=f"{found.value:.3f}", under=ends)


def _metric_order(step: str, metric: str, row: BoardRow) -> SortKey:
    found = metric_value(row.scores, step, metric)
    return None if found is None else found.value


def _slice_columns(rows: Sequence[BoardRow]) -> Iterator[BoardColumn]:
    """A column for each slice; one with few cases is de-emphasised and cannot be sorted."""
    sizes = {(part.by, part.value): part for row in rows for part in informative_slices(row.scores)}
    for (by, value), part in sizes.items():
        yield BoardColumn(
            key=f"{by}={value}",
            head=_say_slice(by, value),
            words=f"{value} ({part.n})",
            group=by[:1].upper() + by[1:],
            cell=partial(_slice_cell, by, value),
            order=None if part.is_small else partial(_slice_order, by, value),
        )


def _say_slice(by: str, value: str) -> str:
    """The heading of a slice's column; values that are unclear on their own are preceded by their slicing."""
    return value if by in ("modality", "sub-modality", "ICD chapter") else f"{by}: {value}"


def _slice(by: str, value: str, row: BoardRow) -> SliceScore | None:
    return next((part for part in row.scores.slices if (part.by, part.value) == (by, value)), None)


def _slice_cell(by: str, value: str, row: BoardRow) -> BoardCell:
    found = _slice(by, value, row)
    if found is None or found.accuracy.value is None:
        return BoardCell(text=NONE, tone="faint")
    under = ", ".join(filter(None, (tell_ends(found.accuracy), f"n {found.n}")))
    tone: Tone = "faint" if found.is_small else ""
    return BoardCell(text=f"{found.accuracy.value * 100:.1f}", under=under, tone=tone)


def _slice_order(by: str, value: str, row: BoardRow) -> SortKey:
    found = _slice(by, value, row)
    return None if found is None else found.accuracy.value
