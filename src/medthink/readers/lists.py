"""Reading lists for radiologists: blinded, shuffled, read twice, with planted checks; the key is kept apart.

A reading list shows no model, no condition, no case number and no unit id, only codes that hold for one reader. Who is
behind a code is in the key and nowhere else. The same seed and runs give the same lists.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Case
from medthink.core.digest import digest_value, seed_from
from medthink.core.errors import DataError, UsageError
from medthink.core.files import write_atomic
from medthink.core.jsonio import read_json, write_json
from medthink.judge.decisive import read_decisive
from medthink.judge.evidence import DEFAULT_SIGHT, Evidence, gather_evidence
from medthink.judge.judged import cut_units
from medthink.judge.judgement import Judgement
from medthink.judge.judgements import read_judgements
from medthink.judge.kinds import KINDS
from medthink.judge.rubric import load_rubric
from medthink.judge.units import NOT_SHOWN, Source, UnitSet
from medthink.readers.instructions import reading_instructions
from medthink.readers.planting import apply_check, find_check
from medthink.readers.tables import write_table
from medthink.runs.run import Run
from medthink.runs.showing import Showing
from medthink.workflow.view import Shown

_FILLED_IN = dict.fromkeys(column.name for kind in KINDS.values() for column in kind.columns)
COLUMNS = ("reader", "sheet", "unit", "number", "kind", "part", "text", *_FILLED_IN, "note")
CASE_COLUMNS = (
    "sheet", "images", "history", "options", "captions", "findings", "discussion", "diagnosis", "answer", "whole_text",
)  # fmt: skip
PLANTED = "planted"
HOW_TO_FILE = "how-to-read.txt"


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """What is behind a code: the run, the case and the unit, a second reading, or a planted check and its truth."""

    reader: str
    run: str
    case: int
    unit: str
    is_again: bool = False
    planted: bool | None = None
    what: str = "steps"
    form: str = "step"


class ReadingKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is behind every code of a set of reading lists; `runs` names the model of each run."""

    seed: int
    rubric: str
    runs: dict[str, str]
    codes: dict[str, Code]


class ReadingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the lists are made: each sheet goes to `per_sheet` readers, so many of them twice, so many planted."""

    readers: tuple[str, ...]
    per_sheet: int = 2
    sheets: int | None = None
    again_share: float = 0.1
    planted_share: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if len(set(self.readers)) < len(self.readers) or not all(map(_is_name, self.readers)):
            raise UsageError("readers need different names of letters and digits", remedy="such as --readers anna,ben")
        if not 1 <= self.per_sheet <= len(self.readers):
            raise UsageError(
                f"each sheet cannot go to {self.per_sheet} of {len(self.readers)} readers", remedy="change --per-sheet"
            )


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """What is read in one go: the units of one prediction, with the case they are about.

    `supported` are units that every judge calls true: of these planted checks are made.
    """

    run: str
    model: str
    case: Case
    shown: Shown
    units: UnitSet
    source: Source
    supported: frozenset[str] = frozenset()


class _Line(msgspec.Struct, frozen=True):
    """One row to fill in."""

    unit: str
    kind: str
    part: str
    text: str
    planted: bool | None = None


class _ListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One sheet on one reader's list."""

    run: str
    case: Case
    evidence: Evidence
    source: Source
    units: UnitSet
    supported: frozenset[str]
    lines: tuple[_Line, ...]
    is_again: bool = False

    @property
    def name(self) -> list[object]:
        return [self.run, self.case.id, self.lines[0].unit, self.is_again]


def write_lists(out: Path, sheets: Sequence[Sheet], plan: ReadingPlan, *, form: str = "csv") -> ReadingKey:
    """Write every reader's list, case table and images, how to read them, and the key; returns the key."""
    if not sheets:
        raise UsageError("there is nothing to read", remedy="judge a run first: that cuts its texts into units")
    lists = [f"{reader}{part}.{form}" for reader in plan.readers for part in ("", "-cases")]
    key_file = key_path(out)
    if key_file.exists() or any((out / name).exists() for name in lists):
        raise UsageError(f"{out} holds reading lists already, perhaps filled in", remedy="name another folder by --out")
    codes: dict[str, Code] = {}
    for reader, entries in assign(sheets, plan).items():
        rows: list[dict[str, Any]] = []
        cases: list[dict[str, Any]] = []
        for entry in entries:
            # Codes begin with a letter: a spreadsheet would take one of digits alone, or with an e, for a number.
            sheet = "s" + digest_value(["sheet", plan.seed, reader, *entry.name])[:8]
            cases.append({"sheet": sheet, "images": _write_images(out, sheet, entry), **_context(entry)})
            for number, line in enumerate(entry.lines, start=1):
                code = "u" + digest_value(["unit", plan.seed, reader, *entry.name, line.unit])[:12]
                codes[code] = _code(reader, entry, line)
                rows.append({"reader": reader, "sheet": sheet, "unit": code, "number": number, **_visible(line)})
        write_table(out / f"{reader}.{form}", COLUMNS, rows)
        write_table(out / f"{reader}-cases.{form}", CASE_COLUMNS, cases)
    write_atomic(out / HOW_TO_FILE, [reading_instructions().encode()])
    models = {sheet.run: sheet.model for sheet in sheets}
    key = ReadingKey(seed=plan.seed, rubric=load_rubric().version(), runs=models, codes=codes)
    write_json(key_file, msgspec.to_builtins(key))
    return key


def key_path(out: Path) -> Path:
    """Where the key of the lists in a folder is written: beside it, since readers are given the folder."""
    folder = out.resolve()
    return folder.parent / f"{folder.name}-key.json"


def read_key(path: Path) -> ReadingKey:
    """The key of a set of reading lists."""
    try:
        return msgspec.convert(read_json(path), ReadingKey)
    except msgspec.ValidationError as error:
        raise DataError(
            f"not the key of reading lists: {error}", file=path, remedy="give the key that medthink reading wrote"
        ) from None


def assign(sheets: Sequence[Sheet], plan: ReadingPlan) -> dict[str, list[_ListEntry]]:
    """Each reader's list in the order of reading: every group of readers shares sheets, repeats come late."""
    chance = Random(seed_from("reading", plan.seed))
    chosen = sorted(sheets, key=lambda one: (one.case.id, one.run, one.units.sample, one.units.what))
    chance.shuffle(chosen)
    chosen = chosen[: plan.sheets]
    groups = list(combinations(plan.readers, plan.per_sheet))
    chance.shuffle(groups)
    lists: dict[str, list[_ListEntry]] = {reader: [] for reader in plan.readers}
    for number, sheet in enumerate(chosen):
        for reader in groups[number % len(groups)]:
            lists[reader].append(_entry(sheet))
    return {reader: _arrange(entries, plan, reader) for reader, entries in lists.items()}


def _arrange(entries: list[_ListEntry], plan: ReadingPlan, reader: str) -> list[_ListEntry]:
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


def _plant_checks(entries: list[_ListEntry], wanted: int, chance: Random) -> list[_ListEntry]:
    """So many checks as the texts allow, false and true ones in turn."""
    checks: list[_ListEntry] = []
    for host in chance.sample(entries, len(entries)):
        if len(checks) == wanted:
            break
        is_true = len(checks) % 2 == 1
        planted = _plant(host, chance, is_true=is_true) or _plant(host, chance, is_true=not is_true)
        checks += [planted] if planted else []
    return checks


def _entry(sheet: Sheet) -> _ListEntry:
    items = KINDS[sheet.units.what].items(sheet.units)
    lines = tuple(_Line(item.id, item.form, item.part, item.text) for item in items)
    evidence = gather_evidence(sheet.case, sheet.shown, (*DEFAULT_SIGHT, "images"))
    return _ListEntry(
        run=sheet.run,
        case=sheet.case,
        evidence=evidence,
        source=sheet.source,
        units=sheet.units,
        supported=sheet.supported,
        lines=lines,
    )


def _plant(host: _ListEntry, chance: Random, *, is_true: bool) -> _ListEntry | None:
    """The host's text with one statement made false, or reworded; None where nothing in it can be."""
    if host.source.findings:
        return None
    check = find_check(
        host.units.units,
        supported=host.supported,
        options=host.case.question.options,
        answer=host.case.reference.answer_text,
        is_true=is_true,
        chance=chance,
    )
    if check is None:
        return None
    source, units = apply_check(check, host.source, host.units)
    lines = tuple(
        _Line(
            f"planted {check.unit.id} {item.id}",
            item.form,
            item.part,
            item.text,
            planted=is_true if item.id == f"planted {check.unit.id}" else None,
        )
        for item in KINDS[units.what].items(units)
    )
    return replace(host, run=PLANTED, lines=lines, source=source, units=units)


def _code(reader: str, entry: _ListEntry, line: _Line) -> Code:
    return Code(
        reader=reader,
        run=entry.run,
        case=entry.case.id,
        unit=line.unit,
        is_again=entry.is_again,
        planted=line.planted,
        what=entry.units.what,
        form=line.kind,
    )


def _visible(line: _Line) -> dict[str, str]:
    return {"kind": line.kind, "part": line.part.removesuffix(NOT_SHOWN).replace("_", " "), "text": line.text}


def _context(entry: _ListEntry) -> dict[str, str]:
    whole = _lines(entry.source.marked(entry.units.units))
    data = entry.evidence.data() | {"answer": entry.source.answer, "whole_text": whole}
    return {name: _lines(data.get(name, "")) for name in CASE_COLUMNS if name not in ("sheet", "images")}


def _lines(part: str | Mapping[str, str]) -> str:
    return part if isinstance(part, str) else "\n".join(f"{name}: {text}" for name, text in part.items())


def _write_images(out: Path, sheet: str, entry: _ListEntry) -> str:
    """Copy the images under the sheet's code: their own names would tell the case."""
    names = []
    for number, image in enumerate(entry.evidence.images, start=1):
        data = image.read()
        name = f"images/{sheet}-{number}.{'png' if data.startswith(bytes([0x89]) + b'PNG') else 'jpg'}"
        write_atomic(out / name, [data])
        names.append(name)
    return "\n".join(names)


def _is_name(name: str) -> bool:
    return bool(name) and name.replace("-", "").replace("_", "").isalnum() and name.isascii()


def sheets_of_run(run: Path, data: Path | None = None) -> list[Sheet]:
    """Every prediction of a run whose units can be read, with its case as the model was shown it."""
    opened = Run.open(run)
    manifest, benchmark = opened.manifest, opened.split(data)
    showing = Showing(manifest.condition, benchmark)
    predictions = {(one.case, one.sample): one for one in opened.predictions()}
    name = manifest.digest()
    decisive = read_decisive(run)
    true = _supported(read_judgements(run))
    found = []
    for units in cut_units(run).values():
        # A pair of runs is not read from the list of one.
        if units.state == "ok" and not KINDS[units.what].is_pairwise:
            case = benchmark.case(units.case)
            prediction = predictions[units.case, units.sample]
            source = KINDS[units.what].source(prediction, case, name, decisive.get(units.case))
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
