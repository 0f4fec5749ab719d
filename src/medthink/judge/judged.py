"""A judged run on disk, opened for reading, and all scores of its judgements."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from medthink.cases.case import Case
from medthink.cases.slices import Slices
from medthink.core.errors import DataError, UsageError
from medthink.core.jsonio import read_jsonl, write_jsonl
from medthink.judge.judgement import PANEL, SIGHTS, JudgeConfig, Judgement, JudgeSettings, UnitVerdict, model_identity
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Label
from medthink.judge.prompts import prompt_version
from medthink.judge.scores import (
    JudgeConfigScores,
    by_judge_config,
    clustered_mean,
    majority_label,
    pairwise_disagreement,
)
from medthink.judge.units import UnitKey, UnitSet, read_units
from medthink.runs.run import Run
from medthink.stats import Measured
from medthink.workflow.prediction import Prediction

JUDGEMENTS_FILE = "judgements.jsonl"


def read_judgements(run: Path) -> list[Judgement]:
    """The judgements of a run; empty if it was never judged."""
    path = run / JUDGEMENTS_FILE
    if not path.exists():
        return []
    found = []
    for line in read_jsonl(path):
        try:
            found.append(_read(line.value))
        except msgspec.ValidationError as error:
            raise DataError(
                f"not a judgement: {error}", file=path, row=line.number, remedy="run medthink judge again"
            ) from None
    return found


def write_judgements(run: Path, judgements: Iterable[Judgement]) -> None:
    """Write the judgements in order; the same judgements give the same bytes."""
    rows = sorted(judgements, key=lambda one: one.order)
    if rows:
        write_jsonl(run / JUDGEMENTS_FILE, (msgspec.to_builtins(row) for row in rows))


def merge_judgements(old: Iterable[Judgement], new: Iterable[Judgement]) -> list[Judgement]:
    """All judgements; a new one replaces the old one it repeats."""
    return list({one.order: one for one in [*old, *new]}.values())


def _read(value: Any) -> Judgement:
    row = msgspec.convert(value, dict[str, Any])
    verdicts = msgspec.convert(row.pop("verdicts", ()), tuple[dict[str, Any], ...])
    judgement = msgspec.convert(row, Judgement)
    if judgement.what not in KINDS:
        raise msgspec.ValidationError(f"`{judgement.what}` is not one of {', '.join(KINDS)}")
    return msgspec.structs.replace(judgement, verdicts=KINDS[judgement.what].read_stored(verdicts))


class PanelVote(msgspec.Struct, frozen=True, kw_only=True):
    """The votes on one unit; `majority` is None if no label has more than half."""

    id: str
    judgements: int
    majority: Label | None
    disagreement: float


def count_votes(judgements: Iterable[Judgement]) -> tuple[PanelVote, ...]:
    """The votes of all judgements of a prediction on each of its units."""
    labels: dict[str, list[Label]] = {}
    for one in judgements:
        kind = KINDS[one.what]
        for verdict in one.verdicts:
            label = kind.labels(verdict).get(kind.leading)
            if label is not None:
                labels.setdefault(verdict.id, []).append(label)
    return tuple(
        PanelVote(
            id=unit, judgements=len(given), majority=majority_label(given), disagreement=pairwise_disagreement(given)
        )
        for unit, given in labels.items()
    )


def panel_judgements(judgements: Iterable[Judgement]) -> list[Judgement]:
    """One judgement for each prediction by the majority of its judges, item by item.

    A panel has two or more voices that gave verdicts. A quorum is two votes and more than half of the panel: below it
    the prediction is unjudged. An item without a majority is a tie, and does not affect the others.
    """
    groups = first_replies(judgements)
    voices: dict[str, dict[str, list[Judgement]]] = {}
    for group in groups.values():
        for voice, one in group.items():
            if one.state == "ok":
                voices.setdefault(one.what, {}).setdefault(voice, []).append(one)
    panels = {what: _seat(found) for what, found in voices.items() if len(found) > 1}
    return [
        _vote(group, panels[key[2]], size=len(voices[key[2]]))
        for key, group in sorted(groups.items())
        if key[2] in panels
    ]


def first_replies(judgements: Iterable[Judgement]) -> dict[UnitKey, dict[str, Judgement]]:
    """The one reply of each model that counts beside the other models', by what it is about.

    A model is one voice, however often and with whatever settings it was asked. What has verdicts goes before what has
    none, today's prompt before an older one, and then the latest reply. The embedded judge has no vote.
    """
    groups: dict[UnitKey, dict[str, Judgement]] = {}
    for one in sorted(judgements, key=lambda one: one.order):
        if one.repeat or one.seat.is_smoke_test:
            continue
        voice = model_identity(one.model) or model_identity(one.judge)
        group = groups.setdefault(one.key, {})
        if voice not in group or _precedence(one) > _precedence(group[voice]):
            group[voice] = one
    return groups


def _precedence(one: Judgement) -> tuple[bool, bool, str]:
    return (one.state == "ok", one.prompt == prompt_version(one.what), one.judged_at or "")


def _seat(voices: dict[str, list[Judgement]]) -> JudgeConfig:
    """The panel as one judge, even if some of its judges judged fewer predictions than others."""
    members = [one for found in voices.values() for one in found]
    sees = {sight for one in members for sight in one.setting.sees}
    setting = JudgeSettings(sees=tuple(sight for sight in SIGHTS if sight in sees))
    return JudgeConfig(judge=PANEL, setting=setting, prompt=min(one.prompt for one in members))


def _vote(group: dict[str, Judgement], seat: JudgeConfig, *, size: int) -> Judgement:
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
        detail = f"{len(voting)} of {size} judges gave a verdict"
        return msgspec.structs.replace(blank, why="no_quorum", detail=detail)
    kind = KINDS[first.what]
    ballots: dict[str, list[UnitVerdict]] = {}
    for one in voting:
        for verdict in one.verdicts:
            ballots.setdefault(verdict.id, []).append(verdict)
    results = {unit: kind.vote(given) for unit, given in ballots.items()}
    decided = tuple(result for result in results.values() if result is not None)
    ties = tuple(unit for unit, result in results.items() if result is None or kind.is_tie(result))
    if len(ties) == len(results):
        return msgspec.structs.replace(
            blank, why="no_majority", detail="the judges have no majority on any unit", ties=ties, verdicts=decided
        )
    return msgspec.structs.replace(blank, state="ok", tries=len(voting), verdicts=decided, ties=ties)


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The units of a run, its judgements, and whether each answer is right (None where there is none)."""

    path: Path
    units: dict[UnitKey, UnitSet]
    judgements: tuple[Judgement, ...]
    rights: dict[tuple[int, int], bool | None]


class JudgedScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of every judge by kind, including the panel if there are several.

    `disagreement` is, by kind, the mean share of pairs of judges that differ on a unit; `panel_votes` gives it by unit.
    """

    kinds: dict[str, tuple[JudgeConfigScores, ...]]
    disagreement: dict[str, Measured]

    def __getitem__(self, what: str) -> tuple[Any, ...]:
        """The scores of one kind, judge by judge."""
        return self.kinds[what]

    def plain(self) -> dict[str, Any]:
        """The scores as plain values, under the plural of each kind."""
        kinds = {KINDS[what].plural: msgspec.to_builtins(found, str_keys=True) for what, found in self.kinds.items()}
        return kinds | {"disagreement": msgspec.to_builtins(self.disagreement)}


def cut_units(run: Path) -> dict[UnitKey, UnitSet]:
    """The run's units, or UsageError if its texts were never segmented."""
    units = read_units(run)
    if not units:
        raise UsageError(
            f"the texts of {run} are not segmented into units yet",
            remedy=f"run medthink judge {run} --judge SPEC first",
        )
    return units


def load_judged(path: Path, cases: Mapping[int, Case]) -> JudgedRun:
    """Open a judged run; `cases` are those of its benchmark."""
    run = Run.open(path)
    units, judgements = read_units(path), read_judgements(path)
    _refuse_strange_units(path, units, judgements)
    rights = {(one.case, one.sample): _is_right(one, cases[one.case]) for one in run.predictions()}
    return JudgedRun(path=path, units=units, judgements=tuple(judgements), rights=rights)


def score_judged(run: JudgedRun, slices: Slices) -> JudgedScores:
    """Every score that the run's judgements allow, judge by judge."""
    rows = [*run.judgements, *panel_judgements(run.judgements)]
    return JudgedScores(
        kinds={
            name: tuple(
                kind.score_with_slices(group, run.units, run.rights, slices)
                for group in by_judge_config(rows, name).values()
            )
            for name, kind in KINDS.items()
        },
        disagreement={name: measured for name in KINDS if (measured := _disagreement(run, name)) is not None},
    )


def panel_votes(run: JudgedRun) -> dict[UnitKey, tuple[PanelVote, ...]]:
    """How the judges have no majority on any unit that two or more have judged."""
    groups = {
        key: [one for one in group.values() if one.state == "ok"]
        for key, group in sorted(first_replies(run.judgements).items())
    }
    return {key: count_votes(group) for key, group in groups.items() if len(group) > 1}


def _disagreement(run: JudgedRun, what: str) -> Measured | None:
    divided = [(key[0], one.disagreement) for key, units in panel_votes(run).items() if key[2] == what for one in units]
    if not divided:
        return None
    return clustered_mean(((case, share) for case, share in divided), within=(0, 1))


def _is_right(prediction: Prediction, case: Case) -> bool | None:
    return None if prediction.prediction is None else prediction.prediction == case.reference.answer


def _refuse_strange_units(path: Path, units: dict[UnitKey, UnitSet], judgements: list[Judgement]) -> None:
    for number, one in enumerate(judgements, start=1):
        known = KINDS[one.what].items(units[one.key]) if one.key in units else ()
        if one.state == "ok" and [verdict.id for verdict in one.verdicts] != [item.id for item in known]:
            raise DataError(
                "the verdicts do not belong to the run's units",
                file=path / JUDGEMENTS_FILE,
                row=number,
                field=f"case {one.case}",
                remedy="the run has changed since it was judged: run medthink judge again with the same judges",
            )
