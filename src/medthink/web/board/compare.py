"""Any two models of the board side by side: the paired verdict, flipped cases, slices, and their differences."""

from collections.abc import Iterator, Mapping

import msgspec

from medthink.board.ranking import BoardRow, Leaderboard
from medthink.cases.case import Case
from medthink.core.numbers import count_of
from medthink.scoring.comparable import why_incomparable
from medthink.scoring.compare import Comparison, PairOfRuns, compare_runs
from medthink.scoring.scores import rate_text
from medthink.web.app.charts import row_name
from medthink.web.app.pairs import PairFigures, choose_flipped, show_pair, tell_p_value
from medthink.web.app.query import Query
from medthink.web.board.case_answers import RevealedCase, distinct_names, revealed_cases, right_shares
from medthink.web.board.columns import accuracy_of, board_columns
from medthink.web.board.leaderboard import tell_rank
from medthink.web.cases.answers import RevealedCases

_MOST_CARDS = 24


class CompareQuery(Query, frozen=True, kw_only=True):
    """The numbers of two models, and which discordant cases are shown: all, `a` or `b`."""

    a: str = ""
    b: str = ""
    only: str = ""


class ComparePage(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, or `problem`, the reason why there is none; without models, the choice of two."""

    query: CompareQuery
    choices: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
    links: tuple[tuple[str, str], ...] = ()
    a: int | None = None
    b: int | None = None
    names: tuple[str, str] = ("", "")
    problem: str = ""
    pair: PairFigures | None = None
    told: tuple[RevealedCase, ...] = ()
    is_reading: bool = False
    beside: tuple[tuple[str, str, str], ...] = ()


def compare_rows(a: BoardRow, b: BoardRow, cases: Mapping[int, Case]) -> Comparison | str:
    """The paired comparison of two rows, or the reason why there is none; with slices if the cases are available."""
    if a.submission.id == b.submission.id:
        return "Both are the same model. Choose another one."
    scored = (a.comparable(), b.comparable())
    why = why_incomparable(*scored)
    return f"{why[:1].upper()}{why[1:]}." if why else compare_runs(scored, dict(cases))


def make_compare_page(
    made: Leaderboard,
    pair: tuple[BoardRow, BoardRow] | None,
    compared: Comparison | str,
    query: CompareQuery,
    revealed: RevealedCases | None,
) -> ComparePage:
    """The page of a comparison; it shows the discordant cases that the reader has revealed."""
    empty = ComparePage(query=query, choices=tuple(_choices(made)), is_reading=revealed is not None)
    if pair is None:
        return empty
    a, b = pair
    names = (row_name(a), row_name(b))
    known = msgspec.structs.replace(
        empty, a=a.submission.id, b=b.submission.id, names=names, beside=tuple(_beside(a, b))
    )
    if isinstance(compared, str):
        return msgspec.structs.replace(known, problem=compared)
    found = compared.pairs[0]
    rights = zip(a.result.rights, b.result.rights, strict=True)
    return msgspec.structs.replace(
        known,
        pair=show_pair(names, compared, rights, _details(found, compared, made, pair)),
        told=tuple(_flipped(pair, found, made, query, revealed)) if revealed else (),
    )


def _choices(made: Leaderboard) -> Iterator[tuple[str, tuple[tuple[int, str], ...]]]:
    """The models to choose from, ranking by ranking."""
    for words, rows in (
        ("Whole cases", made.rows),
        ("With expert cues", made.cued),
        ("A part of each case", made.partial),
    ):
        if rows:
            yield words, tuple(distinct_names(rows).items())


def _details(found: PairOfRuns, compared: Comparison, made: Leaderboard, pair: tuple[BoardRow, BoardRow]) -> str:
    flips = len(found.won) + len(found.lost)
    words = (
        f"They disagree in {flips:,} of {count_of(compared.n_cases, 'case')}; A alone is right in {len(found.won):,}, "
        f"B alone in {len(found.lost):,}. {compared.method[:1].upper()}{compared.method[1:]}, "
        f"p {tell_p_value(found.p_value)}"
    )
    kinds = {row.kind for row in pair}
    rows = made.ranking(pair[0].kind)
    if len(kinds) > 1 or pair[0].kind not in made.thresholds or len(rows) < 3:
        return f"{words}."
    holds = found.statistic > made.thresholds[pair[0].kind]
    pairs = len(rows) * (len(rows) - 1) // 2
    if not holds and not found.is_different:
        return f"{words}."
    verb = "holds" if holds else "does not hold"
    return f"{words}, which {verb} after correction for all {pairs:,} pairs of the board."


def _flipped(
    pair: tuple[BoardRow, BoardRow],
    found: PairOfRuns,
    made: Leaderboard,
    query: CompareQuery,
    revealed: RevealedCases,
) -> Iterator[RevealedCase]:
    wanted = set(choose_flipped(found, query.only))
    peers = made.ranking(pair[0].kind)
    told = revealed_cases(pair, right_shares(pair[0], peers), len(peers), revealed)
    flipped = [one for one in told if one.number in wanted]
    yield from flipped[:_MOST_CARDS]


def _beside(a: BoardRow, b: BoardRow) -> Iterator[tuple[str, str, str]]:
    known = [board_columns([row]) for row in (a, b)]
    yield "Accuracy", rate_text(accuracy_of(a)), rate_text(accuracy_of(b))
    yield "Rank", tell_rank(a), tell_rank(b)
    for key, words in (("gain", "Gain"), ("cost", "Per case"), ("condition", "Condition"), ("proof", "Proof")):
        cells = [columns[key].cell(row) for columns, row in zip(known, (a, b), strict=True)]
        first, second = (" · ".join(part for part in (cell.text, *cell.under.split("\n")) if part) for cell in cells)
        yield words, first, second
    yield "Team", a.submission.team, b.submission.team
