"""Making a study: its sheets, its readers, and the sittings of each."""

import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.cases.benchmark import Benchmark
from medthink.core.clock import now_utc
from medthink.core.errors import UsageError
from medthink.judge.rubric import load_rubric
from medthink.readers.assignment import ReadingKey, Sheet, sheets_of_run
from medthink.readers.studies.plan import StudyForecast, StudyPlan, forecast
from medthink.readers.studies.sittings import Sitting, StudyLists, plan_baseline, plan_judging
from medthink.store import tables
from medthink.store.engine import row_as

_ALIASES = "ABCDEFGHJKLMNPQRSTUVWXYZ"
# Both readings of every item that an adjudicator settles, by its code.
Frozen = dict[str, list[dict[str, str]]]


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A stored study; `key` maps the codes to their items, never leaves the server, and is empty unless asked for."""

    id: int
    token: str
    plan: StudyPlan
    made_by: str
    made_at: str
    key: ReadingKey = ReadingKey(seed=0, rubric="", runs={}, codes={})
    closed_at: str | None = None


class StudyReader(msgspec.Struct, frozen=True, kw_only=True):
    """One reader of a study; `name` is the account's, `alias` the pseudonym used where names are not shown."""

    id: int
    study_id: int
    name: str
    alias: str
    is_adjudicator: bool = False
    training: dict[str, str] = {}
    trained_at: str | None = None


class PlannedStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study before it is stored: its sittings, its key, and its forecast."""

    plan: StudyPlan
    lists: StudyLists
    key: ReadingKey
    forecast: StudyForecast


def plan_study(plan: StudyPlan) -> PlannedStudy:
    """Read the runs or cases that the plan names, and assign every reader's sittings."""
    models: dict[str, str] = {}
    if plan.is_baseline:
        cases = [case for case in Benchmark.open(Path(plan.data))[plan.split] if _fits(case.modalities, plan)]
        lists = plan_baseline(cases, plan)
    else:
        sheets = _gather_sheets(plan)
        models = {sheet.run: sheet.model for sheet in sheets}
        lists = plan_judging(sheets, plan)
    if not any(lists.sittings.values()):
        raise UsageError("no case fits the plan", remedy="choose other runs, kinds of judging or cases")
    counts = {reader: [one.units for one in own] for reader, own in lists.sittings.items()}
    return PlannedStudy(
        plan=plan,
        lists=lists,
        key=ReadingKey(seed=plan.seed, rubric=load_rubric().version(), runs=models, codes=lists.codes),
        forecast=forecast(plan, _count_units(lists), counts),
    )


def _gather_sheets(plan: StudyPlan) -> list[Sheet]:
    """The sheets of all runs, of the kinds and cases that the plan asks for."""
    runs = [Path(run) for run in plan.runs]
    found = [
        sheet for run in runs for sheet in sheets_of_run(run, Path(plan.data), [one for one in runs if one != run])
    ]
    fitting = [sheet for sheet in found if sheet.units.what in plan.kinds and _fits(sheet.case.modalities, plan)]
    if not fitting:
        raise UsageError(
            "there is nothing to read in these runs",
            remedy="run medthink judge RUN --judge baseline/rules first: it splits their texts into units",
        )
    return fitting


def _fits(modalities: tuple[str, ...], plan: StudyPlan) -> bool:
    return not plan.modality or plan.modality in modalities


def _count_units(lists: StudyLists) -> list[int]:
    """The units of every text that is read, each counted once however many read it."""
    seen: dict[tuple[object, ...], int] = {}
    for own in lists.sittings.values():
        for one in own:
            words = tuple(item.text for text in one.revealed.texts for item in text.items)
            seen.setdefault((one.case, words), one.units)
    return list(seen.values())


_TOKEN_BYTES = 9


def make_study_token() -> str:
    """A new token for a study."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def create_study(connection: Connection, planned: PlannedStudy, *, made_by: str, token: str = "") -> Study:
    """Store the study with its readers and their sittings, under this token or a new one."""
    token, now = token or make_study_token(), now_utc()
    row: dict[str, object] = {
        "token": token,
        "name": planned.plan.name,
        "plan": msgspec.to_builtins(planned.plan),
        "key": msgspec.to_builtins(planned.key),
        "made_by": made_by,
        "made_at": now,
    }
    study_id = _insert(connection, tables.studies, row)
    for number, name in enumerate(planned.plan.readers):
        reader_id = add_reader(connection, study_id, name, place=number)
        add_sittings(connection, study_id, reader_id, [(one, None) for one in planned.lists.sittings[name]])
    return Study(id=study_id, token=token, plan=planned.plan, key=planned.key, made_by=made_by, made_at=now)


def add_reader(connection: Connection, study_id: int, name: str, *, place: int, is_adjudicator: bool = False) -> int:
    """Add a reader; returns the number."""
    row: dict[str, object] = {
        "study_id": study_id,
        "name": name,
        "alias": f"{secrets.choice(_ALIASES)}{place + 1}",
        "is_adjudicator": is_adjudicator,
        "training": {},
    }
    return _insert(connection, tables.study_readers, row)


def _insert(connection: Connection, table: sa.Table, row: dict[str, object]) -> int:
    return int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())


def add_sittings(
    connection: Connection, study_id: int, reader_id: int, sittings: Sequence[tuple[Sitting, Frozen | None]]
) -> None:
    """Add sittings to a reader's list, those of an adjudicator with the readings that they settle."""
    rows = [
        {
            "study_id": study_id,
            "reader_id": reader_id,
            "place": place,
            "code": one.code,
            "case_id": one.case,
            "units": one.units,
            "content": msgspec.to_builtins(one),
            "frozen": frozen,
        }
        for place, (one, frozen) in enumerate(sittings)
    ]
    if rows:
        connection.execute(sa.insert(tables.sittings), rows)


_SHORT = [column for column in tables.studies.c if column.name != "key"]


def find_study(connection: Connection, token: str, *, with_key: bool = False) -> Study | None:
    """The study with this token."""
    table = tables.studies
    wanted = sa.select(*_SHORT, *([table.c.key] if with_key else [])).where(table.c.token == token)
    row = connection.execute(wanted).mappings().first()
    return None if row is None else row_as(row, Study)


def list_studies(connection: Connection) -> list[Study]:
    """All studies, the newest first."""
    rows = connection.execute(sa.select(*_SHORT).order_by(tables.studies.c.id.desc())).mappings()
    return [row_as(row, Study) for row in rows]


def close_study(connection: Connection, study_id: int) -> None:
    """Close the study to further reading; existing readings are kept."""
    connection.execute(sa.update(tables.studies).where(tables.studies.c.id == study_id).values(closed_at=now_utc()))


def list_readers(connection: Connection, study_id: int) -> list[StudyReader]:
    """The readers of a study, in the order of the plan."""
    table = tables.study_readers
    wanted = sa.select(table).where(table.c.study_id == study_id, table.c.revoked_at.is_(None)).order_by(table.c.id)
    return [row_as(row, StudyReader) for row in connection.execute(wanted).mappings()]


def studies_read_by(connection: Connection, name: str) -> list[tuple[Study, StudyReader]]:
    """The studies that this account reads in, the newest first."""
    table = tables.study_readers
    wanted = sa.select(table).where(table.c.name == name, table.c.revoked_at.is_(None)).order_by(table.c.id.desc())
    studies = {study.id: study for study in list_studies(connection)}
    readers = [row_as(row, StudyReader) for row in connection.execute(wanted).mappings()]
    return [(studies[reader.study_id], reader) for reader in readers]


def cases_still_to_read(connection: Connection, name: str, data: Path) -> set[int]:
    """The cases that this account still has to read in a study, so their answers must not be shown to it yet."""
    table = tables.sittings
    own = [
        reader.id
        for study, reader in studies_read_by(connection, name)
        if study.closed_at is None and study.plan.folder.resolve() == data.resolve()
    ]
    wanted = sa.select(table.c.case_id).where(table.c.reader_id.in_(own), table.c.committed_at.is_(None))
    return set(connection.execute(wanted).scalars())


def find_reader(connection: Connection, study_id: int, name: str) -> StudyReader | None:
    """The reader of this study with this account."""
    table = tables.study_readers
    own = (table.c.study_id == study_id, table.c.name == name, table.c.revoked_at.is_(None))
    row = connection.execute(sa.select(table).where(*own)).mappings().first()
    return None if row is None else row_as(row, StudyReader)


def store_training(connection: Connection, reader_id: int, answers: dict[str, str], *, is_passed: bool) -> None:
    """Store a reader's training answers, and whether the reader has passed."""
    table = tables.study_readers
    values: dict[str, object] = {"training": answers} | ({"trained_at": now_utc()} if is_passed else {})
    connection.execute(sa.update(table).where(table.c.id == reader_id).values(values))
