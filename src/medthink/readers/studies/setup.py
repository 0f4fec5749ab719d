"""Making a study: its sheets, its readers with their personal links, and the sittings of each."""

import hashlib
import secrets
from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.cases.benchmark import Benchmark
from medthink.core.clock import now_utc
from medthink.core.errors import UsageError
from medthink.judge.rubric import load_rubric
from medthink.readers.assigning import ReadingKey, Sheet, sheets_of_run
from medthink.readers.studies import tables
from medthink.readers.studies.plan import StudyForecast, StudyPlan, forecast
from medthink.readers.studies.sittings import Sitting, StudyLists, plan_baseline, plan_judging

_ALIASES = "ABCDEFGHJKLMNPQRSTUVWXYZ"


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A study as the store has it; `key` says what is behind the codes and never leaves the server."""

    id: int
    token: str
    plan: StudyPlan
    key: ReadingKey
    made_at: str
    closed_at: str | None = None


class StudyReader(msgspec.Struct, frozen=True, kw_only=True):
    """One reader of a study; `alias` is what others on the study's pages see instead of a name."""

    id: int
    study_id: int
    name: str
    alias: str
    account: str | None = None
    is_adjudicator: bool = False
    training: dict[str, str] = {}
    trained_at: str | None = None


class PlannedStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study before it is kept: its sittings, its key, and what it will take."""

    plan: StudyPlan
    lists: StudyLists
    key: ReadingKey
    forecast: StudyForecast


def plan_study(plan: StudyPlan) -> PlannedStudy:
    """Read the runs or cases that the plan names, and lay out every reader's sittings."""
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
            remedy="judge them first, with medthink judge RUN --judge baseline/rules: that cuts their texts into units",
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


def create_study(connection: Connection, planned: PlannedStudy, *, made_by: str) -> tuple[Study, dict[str, str]]:
    """Keep the study; returns it and every reader's personal link, of which only a digest is stored."""
    token, now = secrets.token_urlsafe(9), now_utc()
    row = {
        "token": token,
        "name": planned.plan.name,
        "plan": msgspec.to_builtins(planned.plan),
        "key": msgspec.to_builtins(planned.key),
        "made_by": made_by,
        "made_at": now,
    }
    study_id = _insert(connection, tables.studies, row)
    links = {}
    for number, name in enumerate(planned.plan.readers):
        reader_id, links[name] = add_reader(connection, study_id, name, place=number)
        _add_sittings(connection, study_id, reader_id, planned.lists.sittings[name])
    return Study(id=study_id, token=token, plan=planned.plan, key=planned.key, made_at=now), links


def add_reader(
    connection: Connection, study_id: int, name: str, *, place: int, is_adjudicator: bool = False
) -> tuple[int, str]:
    """Add a reader; returns the number and the personal link."""
    link = secrets.token_urlsafe(24)
    row = {
        "study_id": study_id,
        "name": name,
        "alias": f"{_ALIASES[secrets.randbelow(len(_ALIASES))]}{place + 1}",
        "link": digest_link(link),
        "is_adjudicator": is_adjudicator,
        "training": {},
    }
    return _insert(connection, tables.study_readers, row), link


def _insert(connection: Connection, table: sa.Table, row: dict[str, object]) -> int:
    return int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())


def digest_link(link: str) -> str:
    """What is stored of a personal link."""
    return hashlib.sha256(link.encode()).hexdigest()


def _add_sittings(connection: Connection, study_id: int, reader_id: int, sittings: list[Sitting]) -> None:
    rows = [
        {
            "study_id": study_id,
            "reader_id": reader_id,
            "place": place,
            "code": one.code,
            "case_id": one.case,
            "units": one.units,
            "content": msgspec.to_builtins(one),
        }
        for place, one in enumerate(sittings)
    ]
    if rows:
        connection.execute(sa.insert(tables.sittings), rows)


def find_study(connection: Connection, token: str) -> Study | None:
    """The study with this token."""
    row = connection.execute(sa.select(tables.studies).where(tables.studies.c.token == token)).mappings().first()
    return None if row is None else _study(row)


def list_studies(connection: Connection) -> list[Study]:
    """All studies, the newest first."""
    rows = connection.execute(sa.select(tables.studies).order_by(tables.studies.c.id.desc())).mappings()
    return [_study(row) for row in rows]


def close_study(connection: Connection, study_id: int) -> None:
    """Let nobody read on; what was read stays."""
    connection.execute(sa.update(tables.studies).where(tables.studies.c.id == study_id).values(closed_at=now_utc()))


def list_readers(connection: Connection, study_id: int) -> list[StudyReader]:
    """The readers of a study whose link holds, in the order of the plan."""
    table = tables.study_readers
    wanted = sa.select(table).where(table.c.study_id == study_id, table.c.revoked_at.is_(None)).order_by(table.c.id)
    return [_reader(row) for row in connection.execute(wanted).mappings()]


def enter_study(connection: Connection, link: str) -> tuple[Study, StudyReader] | None:
    """The study and the reader that a personal link belongs to."""
    table = tables.study_readers
    wanted = sa.select(table).where(table.c.link == digest_link(link), table.c.revoked_at.is_(None))
    row = connection.execute(wanted).mappings().first()
    if row is None:
        return None
    study = connection.execute(sa.select(tables.studies).where(tables.studies.c.id == row["study_id"])).mappings().one()
    return _study(study), _reader(row)


def find_reader(connection: Connection, study_id: int, reader_id: int) -> StudyReader | None:
    """A reader of this study whose link holds."""
    return next((one for one in list_readers(connection, study_id) if one.id == reader_id), None)


def replace_link(connection: Connection, reader_id: int) -> str:
    """A new personal link for a reader; the old one no longer opens anything."""
    link = secrets.token_urlsafe(24)
    table = tables.study_readers
    connection.execute(sa.update(table).where(table.c.id == reader_id).values(link=digest_link(link)))
    return link


def _study(row: sa.RowMapping) -> Study:
    return Study(
        id=row["id"],
        token=row["token"],
        plan=msgspec.convert(row["plan"], StudyPlan),
        key=msgspec.convert(row["key"], ReadingKey),
        made_at=row["made_at"],
        closed_at=row["closed_at"],
    )


def _reader(row: sa.RowMapping) -> StudyReader:
    return StudyReader(
        id=row["id"],
        study_id=row["study_id"],
        name=row["name"],
        alias=row["alias"],
        account=row["account"],
        is_adjudicator=row["is_adjudicator"],
        training=row["training"],
        trained_at=row["trained_at"],
    )
