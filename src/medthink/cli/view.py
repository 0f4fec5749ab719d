"""`medthink view`: runs in the browser."""

from pathlib import Path

import click

from medthink.cli.show import say
from medthink.core.numbers import count_of


@click.command()
@click.argument("places", nargs=-1, metavar="[RUN or FOLDER]…", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark, if it has moved.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to open.  [default: the first free from 7350]")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
def view(places: tuple[Path, ...], data: Path | None, port: int | None, no_open: bool) -> None:
    """Show runs and their cases in the browser, while they run and afterwards.

    Shows every RUN, and every run below a FOLDER (default: the current folder). Nothing is written to a run and nothing
    leaves this machine: the pages are served on the loopback address only.

    \b
    Example: medthink view runs/
    """
    from medthink.core.errors import UsageError

    try:
        from medthink.web.security import loopback_hosts
        from medthink.web.server import LOOPBACK, open_port, serve
        from medthink.web.viewer import Viewer, view_application
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web]'") from None

    missing = [place for place in places if not place.is_dir()]
    if missing:
        raise UsageError(f"{missing[0]} is not a folder", remedy="give a run's folder, or a folder with runs in it")
    viewer = Viewer(places or (Path(),), data)
    found = len(viewer.shelf.runs())
    if not found and not viewer.shelf.broken():
        raise UsageError(
            f"no run below {', '.join(map(str, places)) or 'this folder'}",
            remedy="give the folder named by --out of medthink run, or one above it",
        )
    opened = open_port(port)
    number = opened.getsockname()[1]
    address = f"http://{LOOPBACK}:{number}/"
    say(f"{count_of(found, 'run')} at {address}  (Ctrl+C ends it)")
    if not no_open:
        click.launch(address)
    try:
        serve(view_application(viewer, hosts=sorted(loopback_hosts(number))), opened)
    finally:
        viewer.close()
