"""A study's results for its coordinator: progress, agreement, planted checks, drift, and tables to download."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.cases.benchmark import Benchmark
from medthink.cases.slices import slice_cases
from medthink.core.tables import TableRow, write_table
from medthink.judge.judged import cut_units
from medthink.judge.kinds import KINDS
from medthink.judge.scores import clustered_rate
from medthink.readers.agreement import RunAgreement, agreement_of, planted_truths
from medthink.readers.lists import COLUMNS, shown_part
from medthink.readers.readings import ImportedReadings, ReadingsImporter
from medthink.readers.studies.marks import ADDED
from medthink.readers.studies.reading import Mark, OpenSitting, list_sittings, read_marks
from medthink.readers.studies.setup import Study, StudyReader, list_readers
from medthink.runs.run import Run
from medthink.stats import Measured, rate_interval
from medthink.store import tables

_PARTS_OF_TIME = 3


class ReaderProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's progress; times are active time on the page, without pauses."""

    reader: StudyReader
    done: int
    total: int
    units_done: int
    hours: float
    seconds_per_unit: float | None


class DriftPart(msgspec.Struct, frozen=True, kw_only=True):
    """A reader in one third of the readings done so far: how strict, how fast."""

    reader: str
    part: int
    units: int
    held_true: float
    seconds_per_unit: float


class BaselineAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of readers' own diagnoses, for each reader and all together."""

    readers: dict[str, Measured]
    together: Measured | None


class DoneReading(msgspec.Struct, frozen=True, kw_only=True):
    """A sitting that was submitted, with its marks."""

    reader: StudyReader
    opened: OpenSitting
    marks: dict[str, Mark]


def read_progress(connection: Connection, study: Study) -> list[ReaderProgress]:
    """Every reader's progress, in the order of the plan."""
    found = []
    for reader in list_readers(connection, study.id):
        sittings = list_sittings(connection, reader.id)
        done = [one for one in sittings if one.submitted_at is not None]
        seconds = _seconds(connection, [one.id for one in sittings])
        units = sum(one.sitting.units for one in done)
        case_seconds = sum(one.case_seconds or 0.0 for one in sittings)
        found.append(
            ReaderProgress(
                reader=reader,
                done=len(done),
                total=len(sittings),
                units_done=units,
                hours=(sum(seconds.values()) + case_seconds) / 3600,
                seconds_per_unit=sum(seconds.get(one.id, 0.0) for one in done) / units if units else None,
            )
        )
    return found


def read_done(connection: Connection, study: Study) -> list[DoneReading]:
    """Every sitting that was submitted, reader by reader in the order of submission."""
    return [
        DoneReading(reader=reader, opened=one, marks=read_marks(connection, one.id))
        for reader in list_readers(connection, study.id)
        for one in sorted(list_sittings(connection, reader.id), key=lambda one: one.submitted_at or "")
        if one.submitted_at is not None
    ]


def table_rows(readings: Iterable[DoneReading]) -> list[dict[str, Any]]:
    """The readings as rows of the readers' table."""
    rows = []
    for one in readings:
        for text in one.opened.sitting.revealed.texts:
            for number, item in enumerate(text.items, start=1):
                mark = one.marks.get(item.code)
                rows.append(
                    {
                        "reader": one.reader.name,
                        "sheet": one.opened.sitting.code,
                        "unit": item.code,
                        "number": number,
                        "kind": item.form,
                        "part": shown_part(item.part),
                        "text": item.text,
                        **(_table_cells(mark.cells) if mark else {}),
                    }
                )
    return rows


def import_readings(study: Study, run: Path, readings: Sequence[DoneReading]) -> ImportedReadings:
    """The readings of one run, read by the same code as tables."""
    importer = ReadingsImporter(cut_units(run), study.key)
    rows = [
        TableRow(number, {name: str(cell) for name, cell in row.items()})
        for number, row in enumerate(table_rows(readings), start=2)
    ]
    importer.take_rows(rows, Path(study.plan.name))
    return importer.result()


def measure_study(study: Study, readings: Sequence[DoneReading]) -> dict[str, RunAgreement]:
    """The agreement of every run's readers, and with its judges: the figures of `medthink agreement`."""
    first = [one for one in readings if not one.reader.is_adjudicator]
    found = {}
    for place in study.plan.runs:
        run = Path(place)
        imported = import_readings(study, run, first)
        if imported.readings:
            cases = Run.open(run).cases(Path(study.plan.data))
            found[place] = agreement_of(
                run, imported, cases, slices=slice_cases(cases.values()), truths=planted_truths(study.key)
            )
    return found


def measure_baseline(study: Study, readings: Sequence[DoneReading]) -> BaselineAccuracy:
    """The accuracy of the diagnoses that readers committed to; a case read twice counts once."""
    benchmark = Benchmark.open(Path(study.plan.data))[study.plan.split]
    answers = {case.id: case.reference.answer for case in benchmark}
    rights: dict[str, dict[int, bool]] = {}
    for one in readings:
        case = one.opened.sitting.case
        if one.opened.letter is not None and not one.reader.is_adjudicator:
            rights.setdefault(one.reader.name, {}).setdefault(case, one.opened.letter == answers[case])
    rows = [(case, right) for own in rights.values() for case, right in own.items()]
    return BaselineAccuracy(
        readers={name: rate_interval(list(own.values())) for name, own in rights.items()},
        together=clustered_rate(rows) if rows else None,
    )


def measure_drift(readings: Sequence[DoneReading]) -> list[DriftPart]:
    """Each reader's results in thirds of the readings so far, in order of submission."""
    by_reader: dict[str, list[DoneReading]] = {}
    for one in readings:
        if not one.reader.is_adjudicator:
            by_reader.setdefault(one.reader.name, []).append(one)
    return [
        part
        for name, own in by_reader.items()
        for number, third in enumerate(_thirds(own), start=1)
        if (part := _drift(name, number, third)) is not None
    ]


def write_study(study: Study, readings: Sequence[DoneReading], out: Path) -> list[Path]:
    """Write every reader's table and the key, so that `medthink agreement` gives the figures of the study's page."""
    from medthink.core.jsonio import write_json
    from medthink.readers.lists import key_path

    written = []
    for name in dict.fromkeys(one.reader.name for one in readings):
        path = out / f"{name}.csv"
        write_table(path, COLUMNS, table_rows(one for one in readings if one.reader.name == name))
        written.append(path)
    write_json(key_path(out), msgspec.to_builtins(study.key))
    return written


def write_added(readings: Sequence[DoneReading], path: Path) -> None:
    """Write the decisive findings that readers missed on the lists, for those who maintain the lists."""
    rows = [
        {"reader": one.reader.name, "case": one.opened.sitting.case, "finding": one.marks[ADDED].cells["finding"]}
        for one in readings
        if ADDED in one.marks and "finding" in one.marks[ADDED].cells
    ]
    if rows:
        write_table(path, ("reader", "case", "finding"), rows)


def leading_label(what: str, form: str, cells: Mapping[str, str]) -> object:
    """The label by which readings are compared first; None if the reader gave none."""
    labels = KINDS[what].read_cells(form, cells)
    named = KINDS[what].leading if KINDS[what].leading in labels else next(iter(labels))
    return labels.get(named)


def _drift(name: str, number: int, readings: Sequence[DoneReading]) -> DriftPart | None:
    labels, seconds = [], 0.0
    for one in readings:
        for text in one.opened.sitting.revealed.texts:
            for item in text.items:
                mark = one.marks.get(item.code)
                label = leading_label(text.what, item.form, mark.cells) if mark else None
                if mark and label is not None:
                    labels.append(label == KINDS[text.what].true_label)
                    seconds += mark.seconds
    if not labels:
        return None
    return DriftPart(
        reader=name,
        part=number,
        units=len(labels),
        held_true=sum(labels) / len(labels),
        seconds_per_unit=seconds / len(labels),
    )


def _thirds(readings: Sequence[DoneReading]) -> list[Sequence[DoneReading]]:
    size = -(-len(readings) // _PARTS_OF_TIME)
    return [readings[start : start + size] for start in range(0, len(readings), size)] if size else []


def _table_cells(cells: Mapping[str, str]) -> dict[str, str]:
    """A mark's cells as in the table; fields without a column are added to the note."""
    notes = [cells.get("note", "")]
    notes += [f"images: {cells['images']}"] if cells.get("images") else []
    notes += ["badly cut"] if cells.get("badly_cut") else []
    plain = {name: cell for name, cell in cells.items() if name in COLUMNS}
    return plain | {"note": "; ".join(filter(None, notes))}


def _seconds(connection: Connection, sittings: Sequence[int]) -> dict[int, float]:
    table = tables.marks
    wanted = (
        sa.select(table.c.sitting_id, sa.func.sum(table.c.seconds))
        .where(table.c.sitting_id.in_(sittings))
        .group_by(table.c.sitting_id)
    )
    return {row[0]: float(row[1]) for row in connection.execute(wanted)}
