"""The leaderboard as a page: ranks as ranges, ties in tiers, intervals drawn, proof on every row."""

from collections.abc import Callable, Sequence

import msgspec

from medthink.board.provenance import LEVELS, PROVENANCE
from medthink.board.published import PublishedResults
from medthink.board.ranking import BoardRow, Leaderboard
from medthink.metrics.usage import UsageSummary
from medthink.web.pages.marks import NONE, Interval, place_rate, tell_money
from medthink.web.pages.query import Query

PROOF_WORDS = {
    "reported": "Reported",
    "scored": "Scored by us",
    "traced": "With traces",
    "rerun": "Partly re-run",
    "ledger": "Our run",
}


class BoardQuery(Query, frozen=True, kw_only=True):
    """What the board is filtered and sorted by; ranks never change with it."""

    proof: str = ""
    as_of: str = ""


class BoardLine(msgspec.Struct, frozen=True, kw_only=True):
    """One model on the board."""

    number: int
    rank: str
    letters: str
    model: str
    team: str
    effort: str
    condition: str
    accuracy: Interval | None
    value: float
    cost: str
    cost_usd: float | None
    proof: str
    level: int
    submissions: str
    published_at: str
    note: str
    flag: str = ""


class PublishedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A total as reported elsewhere: listed, never ranked."""

    model: str
    mode: str
    accuracy: Interval | None
    note: str


class LeaderboardPage(msgspec.Struct, frozen=True, kw_only=True):
    """A leaderboard, or `problem`: why there is none."""

    query: BoardQuery
    problem: str = ""
    name: str = ""
    split: str = ""
    n_cases: int = 0
    as_of: str = ""
    lines: tuple[BoardLine, ...] = ()
    cued: tuple[BoardLine, ...] = ()
    withdrawn: tuple[BoardLine, ...] = ()
    found: int = 0
    has_costs: bool = False
    published: tuple[PublishedLine, ...] = ()
    source: str = ""
    ladder: tuple[tuple[str, int, str], ...] = ()


class SliceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model's accuracy in one slice."""

    by: str
    value: str
    n: int
    is_small: bool
    rate: Interval


class ModelPage(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the board."""

    line: BoardLine
    facts: tuple[tuple[str, str], ...]
    states: tuple[tuple[str, int], ...]
    slices: tuple[tuple[str, tuple[SliceRow, ...]], ...]


def make_leaderboard_page(made: Leaderboard, published: PublishedResults, query: BoardQuery) -> LeaderboardPage:
    """The rows that the query asks for; a rank is that of the whole board."""
    lines = [make_board_line(row) for row in made.rows]
    return LeaderboardPage(
        query=query,
        name=made.benchmark.name,
        split=made.benchmark.split,
        n_cases=made.benchmark.n_cases,
        as_of=made.as_of[:10],
        lines=tuple(choose_lines(lines, query)),
        cued=tuple(make_board_line(row) for row in made.cued),
        withdrawn=tuple(make_board_line(row) for row in made.withdrawn),
        found=len(lines),
        has_costs=any(line.cost_usd is not None for line in lines),
        published=tuple(_published(published)),
        source=published.source,
        ladder=tuple((PROOF_WORDS[level], place, PROVENANCE[level]) for place, level in enumerate(LEVELS)),
    )


def choose_lines(lines: Sequence[BoardLine], query: BoardQuery) -> list[BoardLine]:
    """Filtered and sorted; in the order of the ranking where nothing is asked for."""
    least = int(query.proof) if query.proof.isdecimal() else 0
    found = [
        line
        for line in lines
        if line.level >= least
        and all(word in f"{line.model} {line.team} {line.effort} {line.condition}".casefold() for word in query.words)
    ]
    key = _SORTS.get(query.sort)
    return sorted(found, key=key, reverse=bool(query.down)) if key else found


_SORTS: dict[str, Callable[[BoardLine], tuple[object, ...]]] = {
    "model": lambda line: (line.model.casefold(),),
    "accuracy": lambda line: (line.value,),
    "cost": lambda line: (line.cost_usd is None, line.cost_usd or 0.0),
    "proof": lambda line: (line.level,),
    "published": lambda line: (line.published_at,),
}


def make_board_line(row: BoardRow) -> BoardLine:
    """A row of the board as a page shows it."""
    one = row.submission
    answers = row.scores.answers
    cost = _cost_per_case(row.scores.usage, len(row.result.cases))
    return BoardLine(
        number=one.id,
        rank=_rank(row),
        letters=" ".join(row.letters),
        model=one.model,
        team=one.team,
        effort=one.about.effort,
        condition=row.scores.origin.condition_label,
        accuracy=place_rate(answers.accuracy) if answers else None,
        value=(answers.accuracy.value or 0.0) if answers else 0.0,
        cost=tell_money(cost, is_least=bool(row.scores.usage and row.scores.usage.unseen_replies)),
        cost_usd=cost,
        proof=PROOF_WORDS[one.provenance],
        level=LEVELS.index(one.provenance),
        submissions=f"{row.by_team} by the team, {row.by_family} of the family",
        published_at=(one.published_at or "")[:10],
        note=one.detail,
        flag=one.flag,
    )


def make_model_page(row: BoardRow) -> ModelPage:
    """One model with everything the store has of it."""
    one, scores = row.submission, row.scores
    slices: dict[str, list[SliceRow]] = {}
    for part in scores.slices:
        rate = place_rate(part.accuracy)
        if rate is not None:
            slices.setdefault(part.by, []).append(
                SliceRow(by=part.by, value=part.value, n=part.n, is_small=part.is_small, rate=rate)
            )
    facts = {
        "team": one.team,
        "organisation": one.about.organisation,
        "condition": scores.origin.condition_label,
        "effort": one.about.effort,
        "task": scores.origin.task,
        "model as the provider names it": ", ".join(scores.origin.reported_models),
        "benchmark": f"fingerprint {scores.origin.text_fingerprint[:12]}",
        "scorer": f"{scores.scorer}, medthink {scores.package}",
        "proof": f"{PROOF_WORDS[one.provenance]}: {PROVENANCE[one.provenance]}",
        "published": one.published_at or "",
        "notes": one.about.notes,
        "note by the maintainers": one.annotation,
        "flagged by the maintainers": one.flag,
    }
    return ModelPage(
        line=make_board_line(row),
        facts=tuple((name, words) for name, words in facts.items() if words),
        states=tuple(scores.answers.states.items()) if scores.answers else (),
        slices=tuple((by, tuple(rows)) for by, rows in slices.items() if len(rows) > 1),
    )


def _rank(row: BoardRow) -> str:
    if row.rank is None or row.worst is None:
        return NONE
    return str(row.rank) if row.rank == row.worst else f"{row.rank}–{row.worst}"


def _cost_per_case(usage: UsageSummary | None, cases: int) -> float | None:
    return usage.cost_usd.value / cases if usage and usage.cost_usd.value is not None and cases else None


def _published(published: PublishedResults) -> list[PublishedLine]:
    return [
        PublishedLine(
            model=one.model,
            mode=" · ".join(part for part in (one.mode, one.effort) if part),
            accuracy=place_rate(published.accuracy(one)),
            note=one.note,
        )
        for one in published.results
    ]
