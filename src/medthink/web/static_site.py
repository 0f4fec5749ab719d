"""The public site of a board as static files: the same pages as served, readable without script, with the data beside.

The same store gives the same bytes: the pages say as of when the board last changed, not when they were written.
"""

from collections.abc import Iterator
from pathlib import Path

from medthink.board.as_of import last_change
from medthink.board.exports import DOWNLOADS, export_board
from medthink.board.ranking import Leaderboard
from medthink.board.store import BoardStore
from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.web.board_site import BoardSite
from medthink.web.live_board import LiveBoard
from medthink.web.rendering import Link, Site, list_assets, load_asset

SITE = Site(links=(Link("", "Leaderboard"),), is_static=True)
_SIGN = "leaderboard.json"


def build_site(store: BoardStore, out: Path, benchmark: str | None = None) -> int:
    """Write the site, or bring an earlier one up to date; returns how many files it has."""
    if out.exists() and any(out.iterdir()) and not (out / _SIGN).is_file():
        raise UsageError(f"{out} is not empty and no site of a board", remedy="name another folder")
    live = LiveBoard(store, benchmark, most=None)
    made = live.made(last_change(store, live.benchmark()))
    files = dict(_files(BoardSite(live, SITE), made))
    for name, data in files.items():
        path = out / name
        if not path.is_file() or path.read_bytes() != data:
            write_atomic(path, [data])
    _remove_others(out, set(files))
    return len(files)


def _files(board: BoardSite, made: Leaderboard) -> Iterator[tuple[str, bytes]]:
    rows = made.every_row()
    yield "index.html", board.leaderboard({"as_of": made.as_of}, root="./").encode()
    for row in rows:
        number = row.submission.id
        yield f"models/{number}/index.html", board.model(number, root="../../").encode()
    for name in list_assets():
        asset = load_asset(name)
        if asset is not None:
            yield f"static/{name}", asset.data
    for form, (name, _) in DOWNLOADS.items():
        yield name, export_board(made, form)
    yield ".nojekyll", b""


def _remove_others(out: Path, files: set[str]) -> None:
    """Pages of models that are no longer on the board, and the folders they leave empty."""
    for path in sorted((out / "models").rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(out).as_posix() not in files:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
