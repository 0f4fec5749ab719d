"""Several judgements of the same units taken together: what most say, and how far they differ."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from medthink.judge.ballots import disagreement, majority
from medthink.judge.evidence import SIGHTS
from medthink.judge.judgement import Judgement, Seat, Setting
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import JudgeKind, Label
from medthink.judge.units import UnitKey
from medthink.judge.verdicts import UnitVerdict

PANEL = "panel"


class Division(msgspec.Struct, frozen=True, kw_only=True):
    """How the judgements of one unit are divided; `majority` is None where no label has more than half."""

    id: str
    judgements: int
    majority: Label | None
    disagreement: float


def divide(judgements: Iterable[Judgement]) -> tuple[Division, ...]:
    """How judgements of the same prediction are divided over each of its units."""
    labels: dict[str, list[Label]] = {}
    for one in judgements:
        kind = KINDS[one.what]
        for verdict in one.verdicts:
            label = kind.labels(verdict).get(kind.leading)
            if label is not None:
                labels.setdefault(verdict.id, []).append(label)
    return tuple(
        Division(id=unit, judgements=len(given), majority=majority(given), disagreement=disagreement(given))
        for unit, given in labels.items()
    )


def seat_panel(judgements: Iterable[Judgement]) -> list[Judgement]:
    """One judgement for each prediction by the majority of its judges; without one, it is unjudged.

    A judge has one vote, its first reply, however often it was asked. The embedded judge has none, and neither has
    what is unjudged. A prediction with nothing to judge stays so.
    """
    groups: dict[UnitKey, list[Judgement]] = {}
    seated: dict[str, list[Judgement]] = {}
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
    verdicts = _vote_all([one.verdicts for one in voting], KINDS[first.what])
    if verdicts is None:
        return msgspec.structs.replace(blank, why="no_majority", detail="the judges are divided over a unit")
    return msgspec.structs.replace(blank, state="ok", tries=len(voting), verdicts=verdicts)


def _vote_all(rows: Sequence[tuple[UnitVerdict, ...]], kind: JudgeKind[Any, Any]) -> tuple[UnitVerdict, ...] | None:
    """One vote per item; judges of the same prediction hold verdicts of the same items in the same order."""
    results = [kind.vote(ballots) for ballots in zip(*rows, strict=True)]
    decided = tuple(result for result in results if result is not None)
    return decided if len(decided) == len(results) else None
