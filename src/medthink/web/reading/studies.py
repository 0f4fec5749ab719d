"""The coordinator's routes: set up, monitor, adjudicate and export a study."""

import io
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from litestar import get, post
from litestar.datastructures import UploadFile
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.params import FromPath, MultipartBody, URLEncodedBody
from litestar.response import Redirect, Response
from sqlalchemy import Connection

from medthink.accounts.account import Account, find_account, find_account_in, normalise_sign_in_name
from medthink.accounts.invitations import invite_reader_in, renew_link
from medthink.core.errors import MedThinkError, UsageError
from medthink.core.files import short_names
from medthink.core.tables import write_table
from medthink.judge.judged import cut_units
from medthink.judge.kinds import KINDS
from medthink.judge.units import UNITS_FILE
from medthink.readers.readings import publish_readings
from medthink.readers.studies import adjudication, reading, results, setup
from medthink.readers.studies.marks import import_table
from medthink.readers.studies.plan import StudyPlan
from medthink.readers.studies.setup import Study
from medthink.runs.manifest import read_manifest
from medthink.store.tables import accounts
from medthink.web.accounts.sign_in import invitation_link
from medthink.web.app.access import Asked, account_of, current_caller, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.rendering import render
from medthink.web.reading.studies_page import (
    RunChoice,
    SetUpPage,
    StudiesPage,
    StudyForm,
    StudyPage,
    StudyRow,
    make_study_page,
)
from medthink.web.runs.index import find_runs
from medthink.web.serve_app import GivenApp, ServeApp

_HERE = "studies"


def _list_runs(app: ServeApp) -> tuple[RunChoice, ...]:
    """Every run below the given folders."""
    return tuple(_describe(name, path, app.bench) for name, path in find_runs(app.runs).items())


def _form_page(app: ServeApp, form: StudyForm, **more: Any) -> str:
    """The form to set up a study."""
    modalities = sorted({name for case in app.bench.cases.values() for name in case.modalities})
    kinds = tuple((name, kind.about) for name, kind in KINDS.items())
    page = SetUpPage(form=form, runs=_list_runs(app), kinds=kinds, modalities=tuple(modalities), **more)
    return render("study-new.html", page, app.site, here=_HERE)


def _read_plan(app: ServeApp, form: StudyForm) -> StudyPlan:
    """The plan described by a form, or UsageError."""
    known = {one.name: one.path for one in _list_runs(app) if not one.problem}
    return StudyPlan(
        name=form.name.strip(),
        data=str(app.bench.benchmark.path),
        split=app.bench.benchmark.splits[0],
        runs=tuple(known[name] for name in form.runs if name in known),
        kinds=tuple(kind for kind in KINDS if kind in form.kinds),
        readers=tuple(name.strip().lower() for name in form.readers.replace("\n", ",").split(",") if name.strip()),
        per_case=_whole(form.per_case, "readers per case"),
        cases=_whole(form.cases, "number of texts") if form.cases.strip() else None,
        modality=form.modality,
        again_share=_whole(form.again, "share read twice") / 100,
        planted_share=_whole(form.planted, "share of planted checks") / 100,
        seed=_whole(form.seed, "seed"),
        needs_training=bool(form.needs_training),
    )


def _sees_study(connection: Connection, study: Study, account: Account) -> bool:
    """Whether a coordinator sees the study: the own ones and those read in; a maintainer sees all."""
    is_own = study.made_by == account.name or account.may("maintainer")
    return is_own or setup.find_reader(connection, study.id, account.name) is not None


def _find_study(app: ServeApp, token: str, account: Account) -> Study:
    """The study with this token, if this coordinator sees it."""
    with app.store.read() as connection:
        found = setup.find_study(connection, token, with_key=True)
        is_seen = found is not None and _sees_study(connection, found, account)
    if found is None or not is_seen:
        raise NotFoundException(detail="There is no such study.")
    return found


def _study_page(app: ServeApp, study: Study) -> StudyPage:
    """The state of the study."""
    is_still_read = _is_still_read(app, study)
    with app.store.read() as connection:
        progress = results.read_progress(connection, study)
        done = [] if is_still_read else results.read_done(connection, study)
        free = [
            (one.id, reader.name, f"case {number} of {reader.name}’s list")
            for reader in setup.list_readers(connection, study.id)
            if not reader.is_adjudicator
            for number, one in enumerate(reading.list_sittings(connection, reader.id), start=1)
            if one.opened_at is None
        ]
    settled = adjudication.settle_study(study, done)
    disputes = adjudication.find_disputes(study, done)
    return make_study_page(
        study,
        progress,
        {Path(run).name: found for run, found in results.measure_study(study, done).items()},
        drift=results.measure_drift(done),
        baseline=results.measure_baseline(study, done) if done else None,
        disputes=(sum(len(one.places) for one in disputes), sum(one.adjudicated is not None for one in settled)),
        free=free[:200],
        is_still_read=is_still_read,
    )


def _is_still_read(app: ServeApp, study: Study) -> bool:
    """Whether the caller has cases of this study left to submit, and so may see nobody else's marks and no key."""
    with app.store.read() as connection:
        reader = setup.find_reader(connection, study.id, current_caller().name)
        own = [] if reader is None else reading.list_sittings(connection, reader.id)
    return any(one.submitted_at is None for one in own)


def _refuse_reader(app: ServeApp, study: Study) -> None:
    if _is_still_read(app, study):
        raise PermissionDeniedException(detail="You are still reading in this study: submit all your cases first.")


def _show_study(app: ServeApp, study: Study, *, status: int = 200, **more: Any) -> Response[str]:
    """The page of a study."""
    page = msgspec.structs.replace(_study_page(app, study), **more)
    return html(render("study.html", page, app.site, here=_HERE), status=status)


FilledStudy = URLEncodedBody[StudyForm]


class ReaderForm(msgspec.Struct):
    """The name of an account."""

    name: str = ""


class TableForm(msgspec.Struct):
    """A table filled in offline."""

    table: UploadFile | None = None


class MoveForm(msgspec.Struct):
    """An unopened sitting, and its new reader."""

    sitting: str = ""
    name: str = ""


@get("/studies", guards=[needs("coordinator")], sync_to_thread=True)
def show_studies(request: Asked, app: GivenApp) -> Response[str]:
    """The studies that this coordinator sees."""
    rows = []
    with app.store.read() as connection:
        for study in setup.list_studies(connection):
            if not _sees_study(connection, study, account_of(request)):
                continue
            progress = results.read_progress(connection, study)
            rows.append(
                StudyRow(
                    token=study.token,
                    name=study.plan.name,
                    made_at=study.made_at[:10],
                    done=sum(one.done for one in progress),
                    total=sum(one.total for one in progress),
                    is_closed=study.closed_at is not None,
                )
            )
    return html(render("studies.html", StudiesPage(studies=tuple(rows)), app.site, here=_HERE))


@get("/studies/new", guards=[needs("coordinator")], sync_to_thread=True)
def show_set_up(app: GivenApp) -> Response[str]:
    """The form to set up a study."""
    form = StudyForm(kinds=["steps", "omissions"], needs_training="yes", token=setup.make_study_token())
    return html(_form_page(app, form))


@post("/studies", guards=[needs("coordinator")], sync_to_thread=True)
def set_up(request: Asked, app: GivenApp, data: FilledStudy) -> Response[Any]:
    """Show the effort of a study and, once confirmed, create it and show every new reader's link.

    The form names the study's token, so that the same form sent again leads to the study that it made.
    """
    with app.store.read() as connection:
        if data.token and setup.find_study(connection, data.token) is not None:
            return Redirect(f"/studies/{data.token}", status_code=303)
    try:
        planned = setup.plan_study(_read_plan(app, data))
    except MedThinkError as error:
        return html(_form_page(app, data, problem=str(error)), status=422)
    if data.really != "yes":
        return html(_form_page(app, data, forecast=planned.forecast))
    try:
        with app.store.write() as connection:
            links = _invite_strangers(request, app, connection, planned.plan.readers)
            study = setup.create_study(connection, planned, made_by=account_of(request).name, token=data.token)
    except MedThinkError as error:
        return html(_form_page(app, data, problem=str(error)), status=422)
    return _show_study(app, study, links=links, notice="The study is set up.")


@get("/studies/{study:str}", guards=[needs("coordinator")], sync_to_thread=True)
def show_study(study: FromPath[str], request: Asked, app: GivenApp) -> Response[str]:
    """The state of a study."""
    return _show_study(app, _find_study(app, study, account_of(request)))


@post("/studies/{study:str}/close", guards=[needs("coordinator")], sync_to_thread=True)
def close(study: FromPath[str], request: Asked, app: GivenApp) -> Redirect:
    """Close the study."""
    found = _find_study(app, study, account_of(request))
    with app.store.write() as connection:
        setup.close_study(connection, found.id)
    return Redirect(f"/studies/{study}", status_code=303)


@post("/studies/{study:str}/link", guards=[needs("coordinator")], sync_to_thread=True)
def new_link(study: FromPath[str], request: Asked, app: GivenApp, data: URLEncodedBody[ReaderForm]) -> Response[str]:
    """A new personal link for a reader who lost theirs."""
    found = _find_study(app, study, account_of(request))
    account = find_account(app.store, data.name)
    with app.store.read() as connection:
        reads = setup.find_reader(connection, found.id, data.name) is not None
    if account is None or not reads:
        return _show_study(app, found, problem="There is no such reader in this study.", status=422)
    if account.roles != ("reader",):
        return _show_study(app, found, problem="This person signs in with a password or a provider.", status=422)
    secret = renew_link(app.store, account, actor=account_of(request).name)
    return _show_study(app, found, links=((data.name, invitation_link(app, request, secret)),))


@post("/studies/{study:str}/move", guards=[needs("coordinator")], sync_to_thread=True)
def move(study: FromPath[str], request: Asked, app: GivenApp, data: URLEncodedBody[MoveForm]) -> Response[Any]:
    """Give an unopened case to another reader."""
    found = _find_study(app, study, account_of(request))
    try:
        with app.store.write() as connection:
            first = [one for one in setup.list_readers(connection, found.id) if not one.is_adjudicator]
            reader = next((one for one in first if one.name == data.name), None)
            sitting = next(
                (
                    one
                    for own in first
                    for one in reading.list_sittings(connection, own.id)
                    if str(one.id) == data.sitting
                ),
                None,
            )
            if reader is None or sitting is None:
                raise UsageError("no such case or reader in this study", remedy="choose from the list")
            reading.reassign(connection, sitting, reader.id)
    except UsageError as error:
        return _show_study(app, found, problem=str(error), status=422)
    return Redirect(f"/studies/{study}", status_code=303)


@post("/studies/{study:str}/adjudicate", guards=[needs("coordinator")], sync_to_thread=True)
def adjudicate(study: FromPath[str], request: Asked, app: GivenApp, data: URLEncodedBody[ReaderForm]) -> Response[str]:
    """Have a third reader decide the items on which the readers differ."""
    found, name = _find_study(app, study, account_of(request)), data.name.strip().lower()
    try:
        with app.store.write() as connection:
            links = _invite_strangers(request, app, connection, [name])
            count = adjudication.open_adjudication(connection, found, name)
    except UsageError as error:
        return _show_study(app, found, problem=str(error), status=422)
    again = _find_study(app, study, account_of(request))
    return _show_study(app, again, links=links, notice=f"{count} cases go to {name}.")


@post("/studies/{study:str}/import", guards=[needs("coordinator")], sync_to_thread=True)
def take_in(study: FromPath[str], request: Asked, app: GivenApp, data: MultipartBody[TableForm]) -> Response[str]:
    """Import a table that a reader filled in offline."""
    found = _find_study(app, study, account_of(request))
    _refuse_reader(app, found)
    if data.table is None or not data.table.filename:
        return _show_study(app, found, problem="No table was chosen.", status=422)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{Path(data.table.filename).suffix.lower()}"
        path.write_bytes(data.table.file.read())
        try:
            with app.store.write() as connection:
                taken = import_table(connection, found, path)
        except MedThinkError as error:
            return _show_study(app, found, problem=f"{error.problem}. {error.remedy}", status=422)
    notice = f"{taken.kept} marks saved, {taken.same} rows empty or already the same."
    return _show_study(app, found, notice=notice, conflicts=taken.conflicts, problems=taken.problems)


@get("/studies/{study:str}/export.zip", guards=[needs("coordinator")], sync_to_thread=True)
def export(study: FromPath[str], request: Asked, app: GivenApp) -> Response[bytes]:
    """The readers' tables, the key, and the adjudicated items, for `medthink agreement`."""
    found = _find_study(app, study, account_of(request))
    _refuse_reader(app, found)
    with app.store.read() as connection:
        done = results.read_done(connection, found)
    return Response(
        _zip_study(found, done),
        media_type="application/zip",
        headers={"Content-Disposition": 'attachment; filename="study.zip"', "Cache-Control": "no-store"},
    )


study_feature = Feature(
    routes=[show_studies, show_set_up, set_up, show_study, close, new_link, move, adjudicate, take_in, export]
)


def _invite_strangers(
    request: Asked, app: ServeApp, connection: Connection, names: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """A link for each reader who has no account yet; UsageError if one has an account that may not read."""
    actor, links = account_of(request).name, []
    for name in names:
        account = find_account_in(connection, accounts.c.name == normalise_sign_in_name(name))
        if account is None:
            _, secret = invite_reader_in(connection, name, actor=actor)
            links.append((name, invitation_link(app, request, secret)))
        elif not account.may("reader"):
            raise UsageError(f"{name} may not read", remedy="give this account the role reader, or name someone else")
    return tuple(links)


def _zip_study(study: Study, done: list[results.DoneReading]) -> bytes:
    """The first readers' tables in a folder of their own, for `medthink agreement`; the rest next to it."""
    first = [one for one in done if not one.reader.is_adjudicator]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "reading"
        out.mkdir()
        results.write_study(study, first, out)
        adjudication.write_settled(adjudication.settle_study(study, done), Path(folder) / "adjudicated.csv")
        results.write_added(done, Path(folder) / "added-findings.csv")
        names = short_names(study.plan.runs)
        for number, place in enumerate(map(Path, study.plan.runs), start=1):
            published = publish_readings(results.import_readings(study, place, first).readings, cut_units(place))
            # Two runs may have folders of one name.
            name = place.name if names[str(place)] == place.name else f"{place.name}-{number}"
            if published.rows:
                write_table(Path(folder) / f"published-{name}.csv", published.columns, published.rows)
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(folder))
        return held.getvalue()


def _describe(name: str, path: Path, bench: LoadedSplit) -> RunChoice:
    manifest = read_manifest(path)
    problem = ""
    if manifest.text_fingerprint != bench.text_fingerprint:
        problem = "made on another benchmark"
    elif not (path / UNITS_FILE).exists():
        problem = "not segmented into units yet: run medthink judge RUN --judge baseline/rules"
    return RunChoice(name=name, path=str(path), model=manifest.model, task=manifest.task, problem=problem)


def _whole(text: str, what: str) -> int:
    if not text.strip().isdecimal():
        raise UsageError(f"the {what} is not a whole number: {text.strip()!r}", remedy="give a whole number")
    return int(text)
