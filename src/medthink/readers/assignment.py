"""Assignment of sheets to readers: each gets a shuffled list, with some sheets twice, and planted checks.

A reader sees sheets and units under codes of their own; the key maps each code to its item. The same
seed and runs give the same lists, on paper (`lists`) and in the reading room (`studies`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Case
from medthink.core.digest import digest_value, seed_from
from medthink.core.errors import UsageError
from medthink.core.names import is_person_name, name_key
from medthink.judge.decisive import read_decisive
from medthink.judge.edits import falsify
from medthink.judge.edits.findings import name_other_options
from medthink.judge.edits.harmless import reword
from medthink.judge.judged import cut_units, read_judgements
from medthink.judge.judgement import DEFAULT_SIGHT, Evidence, Judgement, gather_evidence
from medthink.judge.kinds import KINDS
from medthink.judge.units import Unit, UnitKey, UnitSet, UnitSource
from medthink.runs.run import Run
from medthink.workflow.view import Showing, Shown


class PlantedCheck(NamedTuple):
    """A planted check: a unit in other words, and whether it is still true."""

    unit: Unit
    text: str
    is_true: bool


def make_planted_check(
    units: Sequence[Unit],
    *,
    supported: frozenset[str],
    options: Mapping[str, str],
    answer: str,
    is_true: bool,
    chance: Random,
) -> PlantedCheck | None:
    """A check made from one of the units known to be true, or None if no edit fits.

    A unit is known to be true if every judge supports it, or if it names the diagnosis and no other option.
    """
    found = []
    for unit in units:
        wrong = name_other_options(unit.text, options.values(), answer)
        if unit.carries or (unit.id not in supported and not wrong):
            continue
        said = [one.text for one in units if one is not unit]
        false = [*(falsify(unit.text, said).values() if unit.id in supported else ()), *wrong]
        texts = [reword(unit.text)] if is_true else false
        found += [PlantedCheck(unit, text, is_true) for text in texts if text is not None and text != unit.text]
    return chance.choice(found) if found else None


def apply_planted_check(check: PlantedCheck, source: UnitSource, units: UnitSet) -> tuple[UnitSource, UnitSet]:
    """The text with the planted check, and its units, under made-up ids."""
    part, moved = check.unit.part, len(check.text) - len(check.unit.text)
    text = source.parts[part]
    edited = text[: check.unit.start] + check.text + text[check.unit.end :]
    changed = []
    for unit in units.units:
        new = replace(unit, id=f"planted {unit.id}")
        if unit.id == check.unit.id:
            new = replace(new, text=check.text, end=unit.end + moved)
        elif unit.part == part and unit.start >= check.unit.end:
            new = replace(new, start=unit.start + moved, end=unit.end + moved)
        changed.append(new)
    return replace(source, parts=source.parts | {part: edited}), replace(units, units=tuple(changed))


PLANTED = "planted"


class CodeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a code: the run, the case and the unit, a second reading, or a planted check and its truth."""

    reader: str
    run: str
    case: int
    unit: str
    is_again: bool = False
    planted: bool | None = None
    what: str = "steps"
    form: str = "step"


class ReadingKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key of a set of reading lists: the meaning of every code; `runs` names the model of each run."""

    seed: int
    rubric: str
    runs: dict[str, str]
    codes: dict[str, CodeEntry]


class ReadingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of reading lists: readers per sheet, and the shares of sheets read twice and planted."""

    readers: tuple[str, ...]
    per_sheet: int = 2
    sheets: int | None = None
    again_share: float = 0.1
    planted_share: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        distinct = {name_key(name) for name in self.readers}
        if len(distinct) < len(self.readers) or not all(map(is_person_name, self.readers)):
            raise UsageError(
                "readers need distinct names made of letters, digits and . _ @ + -",
                remedy="such as --readers anna,ben@clinic.org",
            )
        if not 1 <= self.per_sheet <= len(self.readers):
            raise UsageError(
                f"there are {len(self.readers)} readers, so a sheet cannot go to {self.per_sheet} of them",
                remedy="change --readers-per-sheet",
            )


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A sheet, read in one go: the units of one prediction, with their case.

    `supported` are units that every judge calls true; planted checks are made from them.
    """

    run: str
    model: str
    case: Case
    shown: Shown
    units: UnitSet
    source: UnitSource
    supported: frozenset[str] = frozenset()


class ListLine(msgspec.Struct, frozen=True):
    """One row to fill in."""

    unit: str
    kind: str
    part: str
    text: str
    planted: bool | None = None


# What tells a sheet from others: its run, its case, its first item, and whether it is a second reading.
SheetName = tuple[str, int, str, bool]


def sheet_code(seed: int, reader: str, name: SheetName) -> str:
    """The code of a sheet for one reader.

    Codes begin with a letter: a spreadsheet would read digits alone, or digits with an e, as a number.
    """
    return "s" + digest_value(["sheet", seed, reader, *name])[:8]


def unit_code(seed: int, reader: str, name: SheetName, unit: str) -> str:
    """The code of an item of a sheet for one reader."""
    return "u" + digest_value(["unit", seed, reader, *name, unit])[:12]


class ListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One sheet on one reader's list."""

    run: str
    case: Case
    evidence: Evidence
    source: UnitSource
    units: UnitSet
    supported: frozenset[str]
    lines: tuple[ListLine, ...]
    is_again: bool = False

    def sheet_code(self, seed: int, reader: str) -> str:
        """The sheet's code for this reader."""
        return sheet_code(seed, reader, self._name())

    def unit_code(self, seed: int, reader: str, line: ListLine) -> str:
        """The code of one line for this reader."""
        return unit_code(seed, reader, self._name(), line.unit)

    def codes(self, seed: int, reader: str) -> dict[str, CodeEntry]:
        """The meaning of the codes of all lines, in order."""
        return {self.unit_code(seed, reader, line): self._code(reader, line) for line in self.lines}

    def _name(self) -> SheetName:
        return (self.run, self.case.id, self.lines[0].unit, self.is_again)

    def _code(self, reader: str, line: ListLine) -> CodeEntry:
        return CodeEntry(
            reader=reader,
            run=self.run,
            case=self.case.id,
            unit=line.unit,
            is_again=self.is_again,
            planted=line.planted,
            what=self.units.what,
            form=line.kind,
        )


def assign_lists(sheets: Sequence[Sheet], plan: ReadingPlan) -> dict[str, list[ListEntry]]:
    """Each reader's list in the order of reading: groups of readers share sheets, and repeats come late."""
    chance = Random(seed_from("reading", plan.seed))
    chosen = sorted(sheets, key=lambda one: (one.case.id, one.run, one.units.sample, one.units.what))
    chance.shuffle(chosen)
    chosen = chosen[: plan.sheets]
    groups = list(combinations(plan.readers, plan.per_sheet))
    chance.shuffle(groups)
    lists: dict[str, list[ListEntry]] = {reader: [] for reader in plan.readers}
    for number, sheet in enumerate(chosen):
        for reader in groups[number % len(groups)]:
            lists[reader].append(list_entry(sheet))
    return {reader: _arrange(entries, plan, reader) for reader, entries in lists.items()}


def _arrange(entries: list[ListEntry], plan: ReadingPlan, reader: str) -> list[ListEntry]:
    """Shuffle a reader's own list, plant checks in it, and put second readings behind the first half."""
    chance = Random(seed_from("reading", plan.seed, reader))
    again = [
        replace(entry, is_again=True) for entry in chance.sample(entries, math.ceil(len(entries) * plan.again_share))
    ]
    arranged = [*entries, *_plant_checks(entries, math.ceil(len(entries) * plan.planted_share), chance)]
    chance.shuffle(arranged)
    for entry in again:
        first = next(place for place, one in enumerate(arranged) if one.lines == entry.lines)
        arranged.insert(chance.randint(max(first + 1, len(arranged) // 2), len(arranged)), entry)
    return arranged


def _plant_checks(entries: list[ListEntry], wanted: int, chance: Random) -> list[ListEntry]:
    """Plant as many checks as the texts allow, alternately false and true."""
    checks: list[ListEntry] = []
    for host in chance.sample(entries, len(entries)):
        if len(checks) == wanted:
            break
        is_true = len(checks) % 2 == 1
        planted = _plant(host, chance, is_true=is_true) or _plant(host, chance, is_true=not is_true)
        checks += [planted] if planted else []
    return checks


def list_entry(sheet: Sheet, *, is_again: bool = False) -> ListEntry:
    """The sheet as an entry of a list, with a line for every item to label."""
    items = KINDS[sheet.units.what].items(sheet.units)
    lines = tuple(ListLine(item.id, item.form, item.part, item.text) for item in items)
    evidence = gather_evidence(sheet.case, sheet.shown, (*DEFAULT_SIGHT, "images"))
    return ListEntry(
        run=sheet.run,
        case=sheet.case,
        evidence=evidence,
        source=sheet.source,
        units=sheet.units,
        supported=sheet.supported,
        lines=lines,
        is_again=is_again,
    )


def _plant(host: ListEntry, chance: Random, *, is_true: bool) -> ListEntry | None:
    """The host's text with one statement made false, or reworded; None if no statement can be."""
    if host.source.findings:
        return None
    check = make_planted_check(
        host.units.units,
        supported=host.supported,
        options=host.case.question.options,
        answer=host.case.reference.answer_text,
        is_true=is_true,
        chance=chance,
    )
    if check is None:
        return None
    source, units = apply_planted_check(check, host.source, host.units)
    lines = tuple(
        ListLine(
            f"planted {check.unit.id} {item.id}",
            item.form,
            item.part,
            item.text,
            planted=is_true if item.id == f"planted {check.unit.id}" else None,
        )
        for item in KINDS[units.what].items(units)
    )
    return replace(host, run=PLANTED, lines=lines, source=source, units=units)


def sheets_of_run(run: Path, data: Path | None = None, against: Sequence[Path] = ()) -> list[Sheet]:
    """Every prediction of a run whose units can be read, with its case as the model was shown it.

    Where the run was compared with another one, the pair can be read if that run is among those `against`.
    """
    opened = Run.open(run)
    manifest, benchmark = opened.manifest, opened.split(data)
    showing = Showing(manifest.condition, benchmark)
    predictions = {(one.case, one.sample): one for one in opened.predictions()}
    name = manifest.digest()
    decisive = read_decisive(run)
    true = _supported(read_judgements(run))
    found = []
    pairs = _pair_sources(opened, [Run.open(one) for one in against])
    for units in cut_units(run).values():
        case = benchmark.case(units.case)
        if KINDS[units.what].is_pairwise:
            source = pairs.get(units.key)
        else:
            prediction = predictions[units.case, units.sample]
            source = KINDS[units.what].source(prediction, case, name, decisive.get(units.case))
        if units.state == "ok" and source is not None:
            found.append(
                Sheet(
                    run=name,
                    model=manifest.model,
                    case=case,
                    shown=showing.show(case)[0],
                    units=units,
                    source=source,
                    supported=true,
                )
            )
    return found


def _pair_sources(run: Run, others: Sequence[Run]) -> dict[UnitKey, UnitSource]:
    """The pairs of texts of this run and others, as shown to judges that compare two."""
    own = [one for one in run.predictions() if one.sample == 0] if others else []
    found: dict[UnitKey, UnitSource] = {}
    for other in others:
        theirs = {one.case: one for one in other.predictions() if one.sample == 0}
        names = {"run": run.manifest.digest(), "other_run": other.manifest.digest(), "against": other.manifest.model}
        for kind in KINDS.values():
            for one in own if kind.is_pairwise else ():
                sources = kind.pair_sources(one, theirs[one.case], **names) if one.case in theirs else ()
                found |= {source.key: source for source in sources}
    return found


def _supported(judgements: Iterable[Judgement]) -> frozenset[str]:
    """The units that every judge calls true; the embedded judge is not asked."""
    true: set[str] = set()
    doubted: set[str] = set()
    for one in judgements:
        kind = KINDS[one.what]
        for verdict in one.verdicts if not one.seat.is_smoke_test else ():
            is_true = kind.labels(verdict).get(kind.leading) == kind.true_label
            (true if is_true else doubted).add(verdict.id)
    return frozenset(true - doubted)
