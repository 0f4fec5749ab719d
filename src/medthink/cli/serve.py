"""`medthink serve`: the leaderboard, accounts and the case explorer in the browser."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from medthink.cli.flags import (
    PATH,
    RUN,
    ListOption,
    browser_flag,
    data_flag,
    open_store,
    port_flag,
    split_flag,
    store_flag,
)
from medthink.cli.output import print_line
from medthink.cli.workers import WorkerProcesses, follow_parent
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from litestar.types import ASGIApp

    from medthink.store.engine import Store
    from medthink.web.app.server import ServeSettings
    from medthink.web.serve_app import ServeApp

LOOPBACK = "127.0.0.1"


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """The things served: a store, and if given, a benchmark, runs to judge and a folder to review."""

    store: str
    data: Path | None = None
    split: str = "test"
    runs: tuple[Path, ...] = ()
    review: Path | None = None
    settings: Path | None = None

    def refuse_missing(self) -> None:
        """UsageError if a given folder does not exist."""
        if self.review is not None and not (self.review / "review.csv").exists():
            raise UsageError(f"{self.review} has no review.csv", remedy="name the work folder of medthink curate build")
        if self.data is not None and not self.data.exists():
            raise UsageError(f"{self.data} is not there", remedy="name the folder of a benchmark")

    def store_flags(self) -> list[str]:
        """The flags with which a worker opens the same store and benchmark."""
        return ["--store", self.store, "--split", self.split, *(["--data", str(self.data)] if self.data else [])]

    def flags(self) -> list[str]:
        """The flags with which another process serves the same."""
        more = [word for run in self.runs for word in ("--runs", str(run))]
        more += ["--review", str(self.review)] if self.review else []
        return [*self.store_flags(), *more, *(["--settings", str(self.settings)] if self.settings else [])]


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the server and its number of processes; `fd` is a socket that the parent has opened."""

    host: str = LOOPBACK
    port: int | None = None
    scoring_workers: int = 1
    web_workers: int = 1
    browser: bool = True
    fd: int | None = None


@click.command()
@store_flag
@data_flag.but(help="The benchmark to read cases from and take submissions for.")
@split_flag
@click.option(
    "--runs", cls=ListOption, type=RUN, metavar="RUN", help="Runs that readers may judge; may be repeated.",
)  # fmt: skip
@click.option("--review", type=PATH, metavar="WORK", help="The work folder of a curation, to review.")
@click.option("--settings", type=PATH, metavar="FILE", help="Sign-up, quotas, public address (TOML).")
@click.option("--demo", "is_demo", is_flag=True, help="Make and show phantoms, runs and a board in ./demo-board.")
@click.option("--host", default=LOOPBACK, show_default=True, metavar="ADDRESS", help="The address to listen on.")
@port_flag
@click.option(
    "--scoring-workers", default=1, show_default=True, type=click.IntRange(0, 64), metavar="N",
    help="Worker processes that check and score submissions.",
)  # fmt: skip
@click.option(
    "--web-workers", default=1, show_default=True, type=click.IntRange(1, 64), metavar="N",
    help="Web server processes.",
)  # fmt: skip
@browser_flag
@click.option("--fd", type=int, hidden=True, help="Listen on this inherited socket (used internally).")
def serve(is_demo: bool, **flags: Any) -> None:
    """Serve a leaderboard with accounts; with --data also submissions, and the cases to read blind.

    The leaderboard and the accounts are those of the store; `medthink accounts add` makes the first maintainer. With
    --data, submissions are accepted, checked and scored by workers, and cases can be read: nothing of the reference is
    sent before a reader commits to an answer, and the answers make a human baseline. Without a maintainer, the board is
    served on the loopback address only.

    \b
    Example: medthink serve --store board.sqlite --data bench/
    """
    try:
        from medthink.web.app.server import ServeSettings, read_settings
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web,board]'") from None

    listening = Listening(**{name: flags.pop(name) for name in Listening.__struct_fields__})
    served = Served(**flags)
    settings = read_settings(served.settings) if served.settings else ServeSettings()
    if is_demo:
        # Whoever tries the demo may try it more than twice.
        settings = settings if served.settings else ServeSettings(uploads_per_day=50, publications_per_week=50)
        served = _fill_demo(served)
    served.refuse_missing()
    with open_store(served.store, creates=True) as store:
        if listening.host != LOOPBACK:
            _refuse_open_house(store, settings)
        _serve(store, served, settings, listening, is_demo=is_demo)


def _serve(store: "Store", served: Served, settings: "ServeSettings", listening: Listening, *, is_demo: bool) -> None:
    from medthink.web.app.server import open_port
    from medthink.web.app.server import serve as answer_requests
    from medthink.web.serve import open_app

    review = served.review / "review.csv" if served.review else None
    app = open_app(store, served.data, served.split, settings, runs=served.runs, review=review)
    if listening.fd is not None:
        follow_parent()
        opened = socket.socket(fileno=listening.fd)
        answer_requests(_application(app, opened), opened, settings.trusted_proxies)
        return
    opened = open_port(listening.port, listening.host)
    application = _application(app, opened)
    address = f"{settings.public_url or f'http://{LOOPBACK}:{opened.getsockname()[1]}'}/"
    print_line(f"Leaderboard at {address}  (press Ctrl+C to stop)")
    if is_demo:
        _fill_people(store, served, address)
    if listening.browser:
        click.launch(address)
    crew = [["board", "worker", "--with-parent", *served.store_flags()]] * (
        listening.scoring_workers if served.data else 0
    )
    crew += [["serve", "--fd", str(opened.fileno()), *served.flags()]] * (listening.web_workers - 1)
    with WorkerProcesses(crew, inherited=[opened.fileno()]).at_work():
        answer_requests(application, opened, settings.trusted_proxies)


def _fill_demo(served: Served) -> Served:
    from medthink.cli.serve_demo import fill_demo

    store, data = fill_demo(Path("demo-board"))
    return msgspec.structs.replace(served, store=str(store), data=data, runs=(store.parent / "runs",))


def _fill_people(store: "Store", served: Served, address: str) -> None:
    """Submissions and a study for the demo, and a link for everybody in it."""
    from medthink.cli.serve_demo import fill_study, fill_submissions

    assert served.data is not None
    runs = served.runs[0]
    links = fill_submissions(store, served.data, runs) | fill_study(store, served.data, runs / "retrieval")
    for who, secret in links.items():
        print_line(f"  as {who}: {address}invitation/{secret}")


def _application(app: "ServeApp", opened: socket.socket) -> "ASGIApp":
    from medthink.web.app.security import loopback_hosts
    from medthink.web.serve import serve_application

    return serve_application(app, hosts=sorted(loopback_hosts(opened.getsockname()[1])))


def _refuse_open_house(store: "Store", settings: "ServeSettings") -> None:
    """Refuse a public board without a maintainer or a public address."""
    from medthink.accounts.account import has_maintainer

    if not has_maintainer(store):
        raise UsageError(
            "this board has no maintainer, so it is only served to this machine",
            remedy="medthink accounts add NAME --role maintainer, or leave out --host",
        )
    if not settings.public_url:
        raise UsageError(
            "a board that others can reach needs a public address", remedy='set public_url = "https://…" in --settings'
        )
    if not settings.is_secure:
        print_line(
            "Note: this address uses plain http, so passwords can be intercepted. Put a proxy with https in "
            "front of it."
        )


@click.command()
@click.argument("places", nargs=-1, metavar="[RUN or FOLDER]…", type=RUN)
@data_flag
@port_flag
@browser_flag
def view(places: tuple[Path, ...], data: Path | None, port: int | None, browser: bool) -> None:
    """Show runs and their cases in the browser, while they run and afterwards.

    Shows every RUN, and every run below a FOLDER (default: the current folder). Nothing is written to a run and nothing
    leaves this machine: the pages are served on the loopback address only.

    \b
    Example: medthink view runs/
    """
    from medthink.core.errors import UsageError
    from medthink.runs.manifest import find_runs

    try:
        from medthink.web.app.security import loopback_hosts
        from medthink.web.app.server import LOOPBACK, open_port, serve
        from medthink.web.runs.viewer import Viewer, view_application
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web]'") from None

    places = tuple(place for place in places if find_runs([place]))
    missing = [place for place in places if not place.is_dir()]
    if missing:
        raise UsageError(f"{missing[0]} is not a folder", remedy="give a run's folder, or a folder with runs in it")
    viewer = Viewer(places or (Path(),), data)
    runs = viewer.shelf.runs()
    found = len(runs)
    if data is not None and found and all(run.doubt for run in runs):
        raise UsageError("the benchmark of no run was found, so right and wrong are unknown", remedy=runs[0].doubt)
    if not found and not viewer.shelf.broken():
        raise UsageError(
            f"no run below {', '.join(map(str, places)) or 'this folder'}",
            remedy="give the folder named by --out of medthink run, or one above it",
        )
    opened = open_port(port)
    number = opened.getsockname()[1]
    address = f"http://{LOOPBACK}:{number}/"
    print_line(f"{count_of(found, 'run')} at {address}  (press Ctrl+C to stop)")
    if browser:
        click.launch(address)
    try:
        serve(view_application(viewer, hosts=sorted(loopback_hosts(number))), opened)
    finally:
        viewer.close()
