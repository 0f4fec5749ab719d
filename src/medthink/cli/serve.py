"""`medthink serve`: the leaderboard and the case explorer in the browser."""

from pathlib import Path

import click

from medthink.cli.show import say
from medthink.cli.stores import open_store, store_flag


@click.command()
@store_flag
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark whose cases can be read.")
@click.option("--split", default="test", show_default=True, help="The split whose cases can be read.")
@click.option(
    "--answers", default="answers.sqlite", show_default=True, metavar="FILE", type=click.Path(path_type=Path),
    help="Where readers' answers are kept.",
)  # fmt: skip
@click.option("--demo", "is_demo", is_flag=True, help="Make and show phantoms, runs and a board in ./demo-board.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to open.  [default: the first free from 7350]")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
def serve(
    store: str, data: Path | None, split: str, answers: Path, is_demo: bool, port: int | None, no_open: bool
) -> None:
    """Serve a leaderboard, and a benchmark's cases to read blind, on this machine.

    The leaderboard is that of the store. With --data, cases can be read: nothing of the reference is sent before a
    reader commits to an answer, and the answers make a human baseline. There are no accounts, so the address is the
    loopback alone.

    \b
    Example: medthink serve --store board.sqlite --data bench/
    """
    from medthink.core.errors import UsageError

    try:
        from medthink.web.house import House
        from medthink.web.human_answers import HumanAnswers
        from medthink.web.security import loopback_hosts
        from medthink.web.server import LOOPBACK, open_port
        from medthink.web.server import serve as answer_requests
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web,board]'") from None

    if is_demo:
        from medthink.cli.serve_demo import fill_demo

        filled, data = fill_demo(Path("demo-board"))
        store, answers = str(filled), filled.with_name("answers.sqlite")
    if data is not None and not data.exists():
        raise UsageError(f"{data} is not there", remedy="name the folder of a benchmark")
    with open_store(store) as opened:
        kept = HumanAnswers(answers)
        try:
            house = House(opened, kept, data, split)
            socket = open_port(port)
            number = socket.getsockname()[1]
            address = f"http://{LOOPBACK}:{number}/"
            say(f"Leaderboard at {address}  (Ctrl+C ends it)")
            if not no_open:
                click.launch(address)
            answer_requests(house.application(hosts=sorted(loopback_hosts(number))), socket)
        finally:
            kept.close()
