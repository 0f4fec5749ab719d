"""A panel of judges: the majority verdict on each unit, and how far the judges differ."""

from collections.abc import Iterable

import msgspec

from medthink.judge.ballots import disagreement, majority
from medthink.judge.evidence import SIGHTS
from medthink.judge.judgement import PANEL, Judgement, Seat, Setting
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Label
from medthink.judge.units import UnitKey
from medthink.judge.verdicts import UnitVerdict
from medthink.judge.voices import voice_of


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
    """One judgement for each prediction by the majority of its judges, item by item.

    A panel has two or more voices that gave verdicts; a model is one voice, however often and with whatever settings it
    was asked, and its first reply counts. The embedded judge has no voice. A quorum is two voices and more than half of
    the panel: below it the prediction is unjudged. An item without a majority is a tie, and does not affect the others.
    """
    groups: dict[UnitKey, dict[str, Judgement]] = {}
    voices: dict[str, dict[str, list[Judgement]]] = {}
    for one in sorted(judgements, key=lambda one: one.order):
        if one.repeat or one.seat.is_smoke_test:
            continue
        voice = voice_of(one.model) or voice_of(one.judge)
        _take(groups.setdefault(one.key, {}), voice, one)
        if one.state == "ok":
            voices.setdefault(one.what, {}).setdefault(voice, []).append(one)
    panels = {what: _seat(found) for what, found in voices.items() if len(found) > 1}
    return [
        _vote(group, panels[key[2]], size=len(voices[key[2]]))
        for key, group in sorted(groups.items())
        if key[2] in panels
    ]


def _take(group: dict[str, Judgement], voice: str, one: Judgement) -> None:
    """A voice's first verdict; if it has none, its first reply."""
    if voice not in group or (group[voice].state != "ok" and one.state == "ok"):
        group[voice] = one


def _seat(voices: dict[str, list[Judgement]]) -> Seat:
    """The panel as one seat, even if some of its judges judged fewer predictions than others."""
    members = [one for found in voices.values() for one in found]
    sees = {sight for one in members for sight in one.setting.sees}
    setting = Setting(sees=tuple(sight for sight in SIGHTS if sight in sees))
    return Seat(judge=PANEL, setting=setting, prompt=min(one.prompt for one in members))


def _vote(group: dict[str, Judgement], seat: Seat, *, size: int) -> Judgement:
    first = next(iter(group.values()))
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
    voting = [one for one in group.values() if one.state == "ok"]
    if not voting:
        return msgspec.structs.replace(blank, state=first.state, why=first.why, detail=first.detail)
    if len(voting) < 2 or 2 * len(voting) <= size:
        detail = f"{len(voting)} of {size} voices gave verdicts"
        return msgspec.structs.replace(blank, why="no_quorum", detail=detail)
    kind = KINDS[first.what]
    ballots: dict[str, list[UnitVerdict]] = {}
    for one in voting:
        for verdict in one.verdicts:
            ballots.setdefault(verdict.id, []).append(verdict)
    results = {unit: kind.vote(given) for unit, given in ballots.items()}
    decided = tuple(result for result in results.values() if result is not None)
    ties = tuple(unit for unit, result in results.items() if result is None)
    if not decided:
        return msgspec.structs.replace(
            blank, why="no_majority", detail="the judges are divided on every unit", ties=ties
        )
    return msgspec.structs.replace(blank, state="ok", tries=len(voting), verdicts=decided, ties=ties)
