"""The public site of a board as static files: the same pages as served.

They are readable without JavaScript, with the data next to them. The same store gives the same bytes: pages state the
time of the board's last change, not the time of writing.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

from medthink.board.exports import DOWNLOADS, export_board
from medthink.board.history import last_change
from medthink.board.ranking import RANKINGS, BoardRow, Leaderboard
from medthink.core.files import claim_folder, write_atomic
from medthink.store.engine import Store
from medthink.web.app.charts import row_name
from medthink.web.app.rendering import Link, Site, list_assets, load_asset
from medthink.web.board.cache import BoardCache
from medthink.web.board.filters import RANKING_FOLDERS
from medthink.web.board.site import compare_page, comparisons_page, leaderboard_page, model_page, public_file
from medthink.web.serve_app import ServeApp

SITE = Site(links=(Link("", "Leaderboard"),), is_static=True)
_SIGN = "leaderboard.json"
# With more models, each is only compared with the first and the next one: all pairs would be thousands of pages.
_MOST_ALL_PAIRS = 15
_FOLDERS = ("models", "compare", "all", "cued", "partial")
_EVERY_LEVEL = "1"


def build_site(store: Store, out: Path, benchmark: str | None = None) -> int:
    """Write or update the site; returns the number of files."""
    claim_folder(out, _SIGN)
    live = BoardCache(store, benchmark, most=None)
    made = live.made(last_change(store, live.benchmark()))
    app = ServeApp(store=store, site=SITE, live=live)
    files = dict(_files(app, made))
    for name, data in files.items():
        path = out / name
        if not path.is_file() or path.read_bytes() != data:
            write_atomic(path, [data])
    _remove_others(out, set(files))
    return len(files)


def pairs_to_show(rows: Sequence[BoardRow]) -> list[tuple[BoardRow, BoardRow]]:
    """The pairs of a ranking that have a page: all of them or, with many models, each with the first and the next."""
    if len(rows) <= _MOST_ALL_PAIRS:
        return list(combinations(rows, 2))
    return [(rows[0], row) for row in rows[1:]] + list(pairwise(rows[1:]))


def _files(app: ServeApp, made: Leaderboard) -> Iterator[tuple[str, bytes]]:
    yield from _rankings(app, made)
    for row in made.every_row():
        number = row.submission.id
        yield f"models/{number}/index.html", model_page(app, number, root="../../").encode()
        if row.submission.allows_download and not row.is_withdrawn:
            yield f"models/{number}/predictions.jsonl", public_file(app, number)
    yield from _comparisons(app, made)
    for name in list_assets():
        asset = load_asset(name)
        if asset is not None:
            yield f"static/{name}", asset.data
    for form, (name, _) in DOWNLOADS.items():
        yield name, export_board(made, form)
    yield ".nojekyll", b""


def _rankings(app: ServeApp, made: Leaderboard) -> Iterator[tuple[str, bytes]]:
    """One page per ranking, and the main one with all provenance levels."""
    asked = {"as_of": made.as_of, "rows": "all"}
    yield "index.html", leaderboard_page(app, asked, root="./").encode()
    yield "all/index.html", leaderboard_page(app, asked | {"proof": _EVERY_LEVEL}, root="../").encode()
    for kind in RANKINGS[1:]:
        if made.ranking(kind):
            page = leaderboard_page(app, asked | {"ranking": kind, "proof": _EVERY_LEVEL}, root="../")
            yield f"{RANKING_FOLDERS[kind]}index.html", page.encode()


def _comparisons(app: ServeApp, made: Leaderboard) -> Iterator[tuple[str, bytes]]:
    links = []
    for kind in RANKINGS:
        for a, b in pairs_to_show(made.ranking(kind)):
            first, second = str(a.submission.id), str(b.submission.id)
            page = compare_page(app, {"a": first, "b": second}, root="../../").encode()
            links.append((f"compare/{first}-{second}/", f"{row_name(a)} and {row_name(b)}"))
            yield f"compare/{first}-{second}/index.html", page
    if links:
        yield "compare/index.html", comparisons_page(app, tuple(links), root="../").encode()


def _remove_others(out: Path, files: set[str]) -> None:
    """Remove pages that are no longer part of the app, and empty folders."""
    for folder in _FOLDERS:
        for path in sorted((out / folder).rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(out).as_posix() not in files:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        if (out / folder).is_dir() and not any((out / folder).iterdir()):
            (out / folder).rmdir()
