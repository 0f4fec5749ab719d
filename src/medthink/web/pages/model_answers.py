"""What the models of a board answered to each case, for readers who have revealed it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from medthink.board.ranking import BoardRow, RankingKind
from medthink.web.pages.charting import row_name


class ModelAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the board: its number, its name, and its letter for each case.

    `gives_words` says whether its team lets everybody read what the model wrote.
    """

    number: int
    name: str
    kind: RankingKind
    letters: Mapping[int, str | None]
    gives_words: bool = False


def collect_answers(rows: Sequence[BoardRow]) -> tuple[ModelAnswers, ...]:
    """The answers of these rows, in their order."""
    names = distinct_names(rows)
    return tuple(
        ModelAnswers(
            number=row.submission.id,
            name=names[row.submission.id],
            kind=row.kind,
            letters=dict(zip(row.result.cases, row.result.answers, strict=True)),
            gives_words=row.submission.allows_download,
        )
        for row in rows
    )


def distinct_names(rows: Sequence[BoardRow]) -> dict[int, str]:
    """The names of rows by number, with team and condition where another row has the same."""
    count = Counter(map(row_name, rows))
    return {row.submission.id: row_name(row) if count[row_name(row)] == 1 else _long_name(row) for row in rows}


def right_share(models: Sequence[ModelAnswers], case: int, gold: str) -> float | None:
    """The share of the models that saw the whole case and got it right; None where none was asked."""
    asked = [one.letters[case] for one in models if one.kind == "unaided" and case in one.letters]
    return asked.count(gold) / len(asked) if asked else None


def _long_name(row: BoardRow) -> str:
    return f"{row_name(row)} · {row.submission.team} · {row.scores.origin.condition_label}"
