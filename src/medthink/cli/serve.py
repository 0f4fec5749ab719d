"""`medthink serve`: the leaderboard, accounts and the case explorer in the browser."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli.crew import Crew, follow_parent
from medthink.cli.show import say
from medthink.cli.stores import open_store, store_flag
from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.board.store import BoardStore
    from medthink.web.house import House
    from medthink.web.settings import ServeSettings

LOOPBACK = "127.0.0.1"


@click.command()
@store_flag
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark whose cases are read and submitted to.")
@click.option("--split", default="test", show_default=True, help="The split whose cases are read and submitted to.")
@click.option("--runs", type=click.Path(path_type=Path), multiple=True, help="Runs that readers may judge; repeatable.")
@click.option(
    "--review", type=click.Path(path_type=Path), metavar="WORK", help="A work folder of medthink curate to review."
)
@click.option("--settings", type=click.Path(path_type=Path), metavar="TOML", help="Sign-up, quotas, public address.")
@click.option("--demo", "is_demo", is_flag=True, help="Make and show phantoms, runs and a board in ./demo-board.")
@click.option("--bind", default=LOOPBACK, show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to open.  [default: the first free from 7350]")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(0, 64), help="Processes that score.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that answer.")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--fd", type=int, hidden=True, help="Answer at this socket, which the parent has opened.")
def serve(
    store: str,
    data: Path | None,
    split: str,
    runs: tuple[Path, ...],
    review: Path | None,
    settings: Path | None,
    is_demo: bool,
    bind: str,
    port: int | None,
    workers: int,
    processes: int,
    no_open: bool,
    fd: int | None,
) -> None:
    """Serve a leaderboard with accounts; with --data also submissions, and the cases to read blind.

    The leaderboard and the accounts are those of the store; `medthink accounts add` makes the first maintainer. With
    --data, submissions are taken in, checked and scored by workers, and cases can be read: nothing of the reference is
    sent before a reader commits to an answer, and the answers make a human baseline. Without a maintainer, the address
    is the loopback alone.

    \b
    Example: medthink serve --store board.sqlite --data bench/
    """
    try:
        from medthink.web.house import House
        from medthink.web.server import open_port
        from medthink.web.settings import ServeSettings, read_settings
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web,board]'") from None

    chosen = read_settings(settings) if settings else ServeSettings()
    if is_demo:
        from medthink.cli.serve_demo import fill_demo

        # Whoever tries the demo may try it more than twice.
        chosen = chosen if settings else ServeSettings(uploads_per_day=50, publications_per_week=50)

        filled, data = fill_demo(Path("demo-board"))
        store, runs = str(filled), (filled.parent / "runs",)
    if review is not None and not (review / "review.csv").exists():
        raise UsageError(f"{review} has no review.csv", remedy="name the work folder of medthink curate build")
    if data is not None and not data.exists():
        raise UsageError(f"{data} is not there", remedy="name the folder of a benchmark")
    with open_store(store) as opened:
        if bind != LOOPBACK:
            _refuse_open_house(opened, chosen)
        house = House(opened, data, split, chosen, runs=runs, review=review / "review.csv" if review else None)
        if fd is not None:
            follow_parent()
            _answer(house, socket.socket(fileno=fd))
            return
        listening = open_port(port, bind)
        address = chosen.public_url or f"http://{LOOPBACK}:{listening.getsockname()[1]}/"
        say(f"Leaderboard at {address}  (Ctrl+C ends it)")
        if is_demo and data is not None:
            from medthink.cli.demo_study import fill_study
            from medthink.cli.demo_submissions import fill_submissions

            links = fill_submissions(opened, data, runs[0]) | fill_study(opened, data, runs[0] / "retrieval")
            for who, secret in links.items():
                say(f"  as {who}: {address}invitation/{secret}")
        if not no_open:
            click.launch(address)
        place = ["--store", store, "--split", split, *(["--data", str(data)] if data else [])]
        crew = [["board", "work", "--with-parent", *place]] * (workers if data else 0)
        more = [word for run in runs for word in ("--runs", str(run))]
        more += ["--review", str(review)] if review else []
        more += ["--settings", str(settings)] if settings else []
        crew += [["serve", "--fd", str(listening.fileno()), *place, *more]] * (processes - 1)
        with Crew(crew, inherited=[listening.fileno()]).at_work():
            _answer(house, listening)


def _answer(house: "House", listening: socket.socket) -> None:
    from medthink.web.security import loopback_hosts
    from medthink.web.server import serve as answer_requests

    answer_requests(house.application(hosts=sorted(loopback_hosts(listening.getsockname()[1]))), listening)


def _refuse_open_house(store: "BoardStore", settings: "ServeSettings") -> None:
    """Let others reach this machine only where somebody keeps the door, under the one name that is answered."""
    from medthink.accounts.people import has_maintainer

    if not has_maintainer(store):
        raise UsageError(
            "nobody keeps this board, so it is served to this machine alone",
            remedy="medthink accounts add NAME --role maintainer, or leave --bind out",
        )
    if not settings.public_url:
        raise UsageError(
            "a board that others reach must know its address", remedy='set public_url = "https://…" in --settings'
        )
    if not settings.is_secure:
        say("Note: people come by http, so passwords can be read on the way. Put a proxy with https in front.")
