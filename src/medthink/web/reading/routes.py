"""Routes of the reading room for readers: studies, a case, its marks. The server alone decides what is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from anyio import to_thread
from litestar import get, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, JSONBody, URLEncodedBody
from litestar.response import Redirect, Response
from sqlalchemy import Connection

from medthink.core.digest import digest_bytes
from medthink.core.errors import UsageError
from medthink.readers.studies import reading, setup
from medthink.readers.studies.adjudication import read_frozen
from medthink.readers.studies.marks import MarkChange, SaveConflict, SavedMark, save_mark
from medthink.readers.studies.reading import OpenSitting, ReaderSitting
from medthink.readers.studies.setup import Study, StudyReader
from medthink.store.engine import Store
from medthink.web.app.access import Asked, account_of, caller_of, needs
from medthink.web.app.application import SENT_AS_IS, Feature, html
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.rendering import render
from medthink.web.reading.case_page import (
    ReadingsPage,
    RoomPage,
    StudyLine,
    find_next,
    make_entry_page,
    make_room_page,
    needs_training,
)
from medthink.web.serve_app import GivenApp, ServeApp

_HERE = "readings"


class RoomSitting(msgspec.Struct, frozen=True):
    """A reader in a study, and one of the reader's sittings."""

    study: Study
    reader: StudyReader
    opened: OpenSitting


def _bench_of(app: ServeApp, study: Study) -> LoadedSplit:
    """The benchmark of a study."""
    return app.library.open(study.plan.folder, study.plan.split)


def find_reading(app: ServeApp, token: str, name: str) -> tuple[Study, StudyReader]:
    """The study with this token, if this account reads in it."""
    with app.store.read() as connection:
        return _find(connection, token, name)


def find_seat(app: ServeApp, token: str, code: str, name: str) -> RoomSitting:
    """One of this account's sittings."""
    with app.store.read() as connection:
        study, reader = _find(connection, token, name)
        opened, _ = _find_sitting(connection, ReaderSitting(token, code, name))
    return RoomSitting(study, reader, opened)


@contextmanager
def at_work(store: Store, seat: ReaderSitting) -> Iterator[tuple[Connection, OpenSitting]]:
    """A transaction that has locked one of this account's sittings; UsageError if the study is closed."""
    with store.write() as connection:
        opened, is_closed = _find_sitting(connection, seat, is_locked=True)
        if is_closed:
            raise UsageError("this study is closed", remedy="ask the coordinator")
        yield connection, opened


def _case_page(app: ServeApp, seat: RoomSitting) -> RoomPage:
    """One case as its reader may see it now."""
    with app.store.read() as connection:
        sittings = reading.list_sittings(connection, seat.reader.id)
        # A case that was reassigned a moment ago is no longer on the list.
        opened = next((one for one in sittings if one.id == seat.opened.id), seat.opened)
        marks = reading.read_marks(connection, opened.id) if opened.is_revealed else {}
        frozen = read_frozen(connection, opened.id) if opened.is_revealed else {}
    return make_room_page(
        seat.study, seat.reader, sittings, opened, _bench_of(app, seat.study), marks=marks, frozen=frozen
    )


def _show_page(app: ServeApp, seat: RoomSitting, *, problem: str = "") -> str:
    """The page of one case."""
    page = msgspec.structs.replace(_case_page(app, seat), problem=problem)
    return render("room.html", page, app.site, here=_HERE)


class CommitForm(msgspec.Struct):
    """The reader's own diagnosis; `seconds` is the viewing time measured by the page."""

    option: str = ""
    confidence: str = ""
    seconds: str = "0"


@get("/readings", guards=[needs("reader")], sync_to_thread=True)
def show_readings(request: Asked, app: GivenApp) -> Response[str]:
    """The reader's studies."""
    with app.store.read() as connection:
        found = [
            (study, reader, reading.list_sittings(connection, reader.id))
            for study, reader in setup.studies_read_by(connection, account_of(request).name)
        ]
    lines = tuple(
        StudyLine(
            token=study.token,
            name=study.plan.name,
            done=sum(one.submitted_at is not None for one in sittings),
            total=len(sittings),
            is_adjudication=reader.is_adjudicator,
            is_closed=study.closed_at is not None,
        )
        for study, reader, sittings in found
    )
    return html(render("readings.html", ReadingsPage(studies=lines), app.site, here=_HERE))


@get("/room/{study:str}", guards=[needs("reader")], sync_to_thread=True)
def show_entry(study: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """The entry to a study or, with `?next`, its next case."""
    found, reader = find_reading(app, study, account_of(request).name)
    with app.store.read() as connection:
        sittings = reading.list_sittings(connection, reader.id)
    if "next" in request.query_params and (following := find_next(sittings)):
        return Redirect(f"/room/{study}/{following.sitting.code}", status_code=303)
    page = make_entry_page(found, reader, sittings, _bench_of(app, found))
    return html(render("room-entry.html", page, app.site, here=_HERE))


@get("/room/{study:str}/{code:str}", guards=[needs("reader")], sync_to_thread=True)
def show_case(study: FromPath[str], code: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """One case; opening it begins the reader's time."""
    seat = find_seat(app, study, code, account_of(request).name)
    if needs_training(seat.study, seat.reader):
        return Redirect(f"/room/{study}/training", status_code=303)
    problem = ""
    if seat.opened.submitted_at is None and seat.study.closed_at is None:
        try:
            with app.store.write() as connection:
                reading.hold_on_device(connection, seat.opened, _device(request))
        except UsageError as error:
            problem = error.problem
    return html(_show_page(app, seat, problem=problem))


@get("/room/{study:str}/{code:str}/state", guards=[needs("reader")], sync_to_thread=True)
def case_state(study: FromPath[str], code: FromPath[str], request: Asked, app: GivenApp) -> Response[bytes]:
    """The same as data for the page's script: nothing withheld before the reveal."""
    page = _case_page(app, find_seat(app, study, code, account_of(request).name))
    return _json(page)


@post("/room/{study:str}/{code:str}/commit", guards=[needs("reader")], sync_to_thread=True)
def commit(
    study: FromPath[str],
    code: FromPath[str],
    request: Asked,
    app: GivenApp,
    data: URLEncodedBody[CommitForm],
) -> Response[Any]:
    """Commit to a diagnosis, which reveals the case."""
    name = account_of(request).name
    sure = int(data.confidence) if data.confidence.isdecimal() else 0
    try:
        with at_work(app.store, ReaderSitting(study, code, name)) as (connection, opened):
            held = reading.hold_on_device(connection, opened, _device(request))
            reading.commit_diagnosis(connection, held, data.option, sure, seconds=_number(data.seconds))
    except UsageError as error:
        return html(_show_page(app, find_seat(app, study, code, name), problem=str(error)), status=422)
    return Redirect(f"/room/{study}/{code}", status_code=303)


@post("/room/{study:str}/{code:str}/hold", guards=[needs("reader")], sync_to_thread=True)
def keep_alive(study: FromPath[str], code: FromPath[str], request: Asked, app: GivenApp) -> Response[bytes]:
    """Keep-alive from the page: the case stays with this device."""
    try:
        with at_work(app.store, ReaderSitting(study, code, account_of(request).name)) as (connection, opened):
            held = reading.hold_on_device(connection, opened, _device(request))
    except UsageError as error:
        return _json({"problem": error.problem}, status=423)
    return _json({"held_until": held.held_until})


@post("/room/{study:str}/{code:str}/marks", guards=[needs("reader")], opt=SENT_AS_IS, sync_to_thread=True)
def save_change(
    study: FromPath[str], code: FromPath[str], request: Asked, app: GivenApp, data: JSONBody[MarkChange]
) -> Response[bytes]:
    """Save a mark: 200 with its version, or 409 with the current mark if it is based on another version."""
    try:
        with at_work(app.store, ReaderSitting(study, code, account_of(request).name)) as (connection, opened):
            answer = save_mark(connection, opened, data, _device(request))
    except UsageError as error:
        return _json({"problem": error.problem}, status=422)
    return _json(answer, status=200 if isinstance(answer, SavedMark) else 409)


@post("/room/{study:str}/{code:str}/submit", guards=[needs("reader")], sync_to_thread=True)
def submit(study: FromPath[str], code: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """Lock the reading, or show what is missing."""
    name = account_of(request).name
    is_script = "application/json" in request.headers.get("accept", "")
    try:
        with at_work(app.store, ReaderSitting(study, code, name)) as (connection, opened):
            gaps = reading.submit_sitting(connection, opened, _device(request))
    except UsageError as error:
        if is_script:
            return _json({"problem": error.problem}, status=422)
        return html(_show_page(app, find_seat(app, study, code, name), problem=str(error)), status=422)
    if is_script:
        return _json({"gaps": gaps})
    if gaps:
        words = f"{len(gaps)} of {opened.sitting.units} units are not fully marked."
        return html(_show_page(app, find_seat(app, study, code, name), problem=words), status=422)
    return Redirect(f"/room/{study}", status_code=303)


@post("/room/{study:str}/{code:str}/form", guards=[needs("reader")])
async def save_form(study: FromPath[str], code: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """Save all marks of a page without JavaScript, whose fields are named by item and column."""
    fields, name = await request.form(), account_of(request).name

    def save() -> Response[Any]:
        try:
            with at_work(app.store, ReaderSitting(study, code, name)) as (connection, opened):
                stale = _save_form(connection, opened, list(fields.multi_items()), _device(request))
        except UsageError as error:
            return html(_show_page(app, find_seat(app, study, code, name), problem=str(error)), status=409)
        if stale:
            words = f"{stale} units were marked elsewhere in the meantime. The current marks are shown."
            return html(_show_page(app, find_seat(app, study, code, name), problem=words), status=409)
        return Redirect(f"/room/{study}/{code}", status_code=303)

    return await to_thread.run_sync(save)


room_feature = Feature(
    routes=[show_readings, show_entry, show_case, case_state, commit, keep_alive, save_change, submit, save_form]
)


def _find(connection: Connection, token: str, name: str) -> tuple[Study, StudyReader]:
    study = setup.find_study(connection, token)
    reader = setup.find_reader(connection, study.id, name) if study else None
    if study is None or reader is None:
        raise NotFoundException(detail="There is no such study.")
    return study, reader


def _find_sitting(connection: Connection, seat: ReaderSitting, *, is_locked: bool = False) -> tuple[OpenSitting, bool]:
    found = reading.find_own_sitting(connection, seat, is_locked=is_locked)
    if found is None:
        raise NotFoundException(detail="There is no such case in this study.")
    return found


def _save_form(connection: Connection, opened: OpenSitting, fields: list[tuple[str, Any]], device: str) -> int:
    """Save the marks that differ from the stored ones; returns the number changed elsewhere meanwhile."""
    given: dict[str, dict[str, list[str]]] = {}
    for name, value in fields:
        item, _, column = name.partition(":")
        given.setdefault(item, {}).setdefault(column, []).append(str(value))
    stale = 0
    marks = reading.read_marks(connection, opened.id)
    for item, columns in given.items():
        version = int(_number("".join(columns.pop("version", ["0"]))))
        cells = {name: ";".join(filter(None, values)) for name, values in columns.items()}
        cells = {name: text for name, text in cells.items() if text.strip()}
        before = marks[item].cells if item in marks else {}
        if cells == before:
            continue
        key = digest_bytes(f"{item} {version} {sorted(cells.items())}".encode())
        change = MarkChange(item=item, version=version, cells=cells, seconds=0.0, key=key[:64])
        stale += isinstance(save_mark(connection, opened, change, device), SaveConflict)
    return stale


def _device(request: Asked) -> str:
    """The calling browser, identified by its session."""
    return digest_bytes(caller_of(request).session.encode())[:16]


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0 <= found < 1e6 else 0.0


def _json(value: object, *, status: int = 200) -> Response[bytes]:
    return Response(
        msgspec.json.encode(value),
        media_type="application/json",
        status_code=status,
        headers={"Cache-Control": "no-store"},
    )
