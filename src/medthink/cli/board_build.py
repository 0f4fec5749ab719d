"""`medthink board build`: the leaderboard as static files."""

from pathlib import Path

import click

from medthink.cli.show import print_json, say
from medthink.cli.stores import open_store, store_flag
from medthink.core.errors import UsageError


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@store_flag
@click.option("--benchmark", metavar="NAME", help="Which benchmark, if the store has several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(out: Path, store: str, benchmark: str | None, as_json: bool) -> None:
    """Write the leaderboard to the folder OUT as static files, ready for any web server.

    The pages are those of medthink serve, readable without JavaScript, with JSON and CSV next to them. The same store
    gives the same bytes; an earlier site in OUT is updated.

    \b
    Example: medthink board build site/
    """
    try:
        from medthink.web.static_site import build_site
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web,board]'") from None
    with open_store(store) as opened:
        files = build_site(opened, out, benchmark)
    if as_json:
        print_json({"folder": str(out), "files": files})
        return
    say(f"{files} files in {out}; open {out / 'index.html'}")
