"""Several judgements of the same units taken together: what most say, and how far they differ."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

import msgspec

from medthink.judge.evidence import SIGHTS
from medthink.judge.judgement import Judgement, Seat, Setting
from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, ErrorType, What
from medthink.judge.units import UnitKey
from medthink.judge.verdicts import EducationVerdict, SentenceVerdict, StatementVerdict, StepVerdict

PANEL = "panel"

Label = TypeVar("Label", bound=Hashable)


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """How the judgements of one unit are divided; `majority` is None where no label has more than half."""

    id: str
    judgements: int
    majority: str | None
    disagreement: float


def majority(labels: Sequence[Label]) -> Label | None:
    """The label that more than half give, or None."""
    for label, count in Counter(labels).most_common(1):
        if 2 * count > len(labels):
            return label
    return None


def disagreement(labels: Sequence[Hashable]) -> float:
    """The share of pairs of judgements that differ."""
    pairs = list(combinations(labels, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0


def divide(judgements: Iterable[Judgement]) -> tuple[Split, ...]:
    """How judgements of one and the same prediction are divided over each of its units."""
    labels: dict[str, list[str]] = {}
    for one in judgements:
        for unit, label in main_labels(one).items():
            labels.setdefault(unit, []).append(label)
    return tuple(
        Split(id=unit, judgements=len(given), majority=majority(given), disagreement=disagreement(given))
        for unit, given in labels.items()
    )


def main_labels(judgement: Judgement) -> dict[str, str]:
    """The leading label of every unit: factual, sentence label, or support."""
    steps = {verdict.id: str(verdict.factual) for verdict in judgement.steps}
    sentences = {verdict.id: str(verdict.label) for verdict in judgement.sentences}
    return steps | sentences | {verdict.id: str(verdict.support) for verdict in judgement.statements}


def seat_panel(judgements: Iterable[Judgement]) -> list[Judgement]:
    """One judgement for each prediction by the majority of its judges; without one, it is unjudged.

    A judge has one vote, its first word, however often it was asked. The embedded judge has none, and neither has what
    is unjudged. A prediction with nothing to judge stays so.
    """
    groups: dict[UnitKey, list[Judgement]] = {}
    seated: dict[What, list[Judgement]] = {}
    for one in judgements:
        if one.repeat == 0 and not one.seat.is_wiring_check:
            groups.setdefault(one.key, []).append(one)
            seated.setdefault(one.what, []).append(one)
    seats = {what: _seat(members) for what, members in seated.items()}
    return [_vote(group, seats[group[0].what]) for _, group in sorted(groups.items())]


def _seat(members: list[Judgement]) -> Seat:
    """The panel is one seat, even where some of its judges have judged fewer predictions than others."""
    sees = {sight for one in members for sight in one.setting.sees}
    setting = Setting(sees=tuple(sight for sight in SIGHTS if sight in sees))
    return Seat(judge=PANEL, setting=setting, prompt=min(one.prompt for one in members))


def _vote(group: list[Judgement], seat: Seat) -> Judgement:
    first = group[0]
    blank = Judgement(
        case=first.case,
        sample=first.sample,
        what=first.what,
        judge=seat.judge,
        repeat=0,
        state="unjudged",
        setting=seat.setting,
        prompt=seat.prompt,
    )
    voting = [one for one in group if one.state == "ok"]
    if not voting:
        return msgspec.structs.replace(blank, state=first.state, why=first.why, detail=first.detail)
    votes = {
        "steps": _vote_all([one.steps for one in voting], _vote_step),
        "sentences": _vote_all([one.sentences for one in voting], _vote_sentence),
        "statements": _vote_all([one.statements for one in voting], _vote_statement),
        "education": _vote_education(voting),
    }
    if any(vote is None for vote in votes.values()):
        return msgspec.structs.replace(blank, why="no_majority", detail="the judges are divided over a unit")
    return msgspec.structs.replace(blank, state="ok", tries=len(voting), **votes)


Ballot = TypeVar("Ballot", StepVerdict, SentenceVerdict, StatementVerdict)


def _vote_all(
    rows: list[tuple[Ballot, ...]], vote: Callable[[list[Ballot]], Ballot | None]
) -> tuple[Ballot, ...] | None:
    """One vote a unit; judges of the same prediction hold verdicts of the same units in the same order."""
    results = [vote(list(ballots)) for ballots in zip(*rows, strict=True)]
    decided = tuple(result for result in results if result is not None)
    return decided if len(decided) == len(results) else None


def _vote_step(ballots: list[StepVerdict]) -> StepVerdict | None:
    factual = majority([ballot.factual for ballot in ballots])
    critical = majority([ballot.critical for ballot in ballots])
    if factual is None or critical is None:
        return None
    agreeing = [ballot for ballot in ballots if ballot.factual == factual]
    return StepVerdict(
        id=ballots[0].id,
        factual=factual,
        critical=critical,
        error_types=_vote_types(agreeing),
        reason=agreeing[0].reason,
        rests_on=agreeing[0].rests_on,
    )


def _vote_types(agreeing: list[StepVerdict]) -> tuple[ErrorType, ...]:
    """The types that most name; where no type is named by most, the one named most often, so that none is lost."""
    counts = Counter(error for ballot in agreeing for error in ballot.error_types)
    common = [error for error, count in counts.items() if 2 * count > len(agreeing)]
    likeliest = sorted(counts, key=lambda error: (-counts[error], ERROR_TYPES.index(error)))[:1]
    return tuple(sorted(common or likeliest, key=ERROR_TYPES.index))


def _vote_sentence(ballots: list[SentenceVerdict]) -> SentenceVerdict | None:
    label = majority([ballot.label for ballot in ballots])
    return next((ballot for ballot in ballots if ballot.label == label), None)


def _vote_statement(ballots: list[StatementVerdict]) -> StatementVerdict | None:
    support = majority([ballot.support for ballot in ballots])
    return next((ballot for ballot in ballots if ballot.support == support), None)


def _vote_education(voting: list[Judgement]) -> tuple[EducationVerdict, ...]:
    """The median of the scores, the lower one of two: a scale has a middle even where no score has a majority."""
    if not voting[0].education:
        return ()
    columns = zip(*(one.education for one in voting), strict=True)
    middles = [sorted(column, key=lambda verdict: verdict.score)[(len(column) - 1) // 2] for column in columns]
    return tuple(sorted(middles, key=lambda verdict: DIMENSIONS.index(verdict.dimension)))
