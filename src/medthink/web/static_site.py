"""The public site of a board as static files: the same pages as served, readable without script, with the data beside.

The same store gives the same bytes: the pages say as of when the board last changed, not when they were written.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from medthink.board.benchmarks import BoardBenchmark, find_benchmark
from medthink.board.ranking import BoardRow, Leaderboard, make_leaderboard
from medthink.board.store import BoardStore
from medthink.core.cells import guard
from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.core.jsonio import encode_json
from medthink.web.board_site import BoardSite
from medthink.web.rendering import Link, Site, list_assets, load_asset

SITE = Site(links=(Link("", "Leaderboard"),), is_static=True)
_SIGN = "leaderboard.json"


def build_site(store: BoardStore, out: Path, benchmark: str | None = None) -> int:
    """Write the site, or bring an earlier one up to date; returns how many files it has."""
    if out.exists() and any(out.iterdir()) and not (out / _SIGN).is_file():
        raise UsageError(f"{out} is not empty and no site of a board", remedy="name another folder")
    found = find_benchmark(store, benchmark)
    made = make_leaderboard(store, found, _last_change(store, found))
    files = dict(_files(BoardSite(store, SITE, benchmark), made))
    for name, data in files.items():
        path = out / name
        if not path.is_file() or path.read_bytes() != data:
            write_atomic(path, [data])
    _remove_others(out, set(files))
    return len(files)


def _files(board: BoardSite, made: Leaderboard) -> Iterator[tuple[str, bytes]]:
    rows = [*made.rows, *made.cued, *made.withdrawn]
    yield "index.html", board.leaderboard({"as_of": made.as_of}, root="./").encode()
    for row in rows:
        number = row.submission.id
        yield f"models/{number}/index.html", board.model(number, root="../../").encode()
    for name in list_assets():
        asset = load_asset(name)
        if asset is not None:
            yield f"static/{name}", asset.data
    plain = [_plain(row) for row in rows]
    yield _SIGN, encode_json({"benchmark": msgspec.to_builtins(made.benchmark), "as_of": made.as_of, "rows": plain})
    yield "leaderboard.csv", _table(plain)
    yield ".nojekyll", b""


def _plain(row: BoardRow) -> dict[str, Any]:
    """What anybody may know of a row, as plain data."""
    one, answers = row.submission, row.scores.answers
    accuracy = msgspec.to_builtins(answers.accuracy) if answers else {}
    return {
        "number": one.id,
        "rank": row.rank,
        "worst_rank": row.worst,
        "ties": " ".join(row.letters),
        "model": one.model,
        "team": one.team,
        "condition": row.scores.origin.condition_label,
        "accuracy": accuracy.get("value"),
        "low": accuracy.get("low"),
        "high": accuracy.get("high"),
        "cases": len(row.scores.cases),
        "provenance": one.provenance,
        "is_expert_cued": one.about.is_expert_cued,
        "published_at": one.published_at,
        "withdrawn_at": one.withdrawn_at,
        "submissions_by_team": row.by_team,
        "submissions_by_family": row.by_family,
    }


def _table(rows: list[dict[str, Any]]) -> bytes:
    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().encode()


def _cell(value: Any) -> Any:
    return guard(value) if isinstance(value, str) else value


def _last_change(store: BoardStore, benchmark: BoardBenchmark) -> str | None:
    """When the board last changed; None for a board on which nothing was ever published."""
    made = make_leaderboard(store, benchmark)
    rows = [*made.rows, *made.cued, *made.withdrawn]
    times = [time for row in rows for time in (row.submission.published_at, row.submission.withdrawn_at) if time]
    return max(times, default=benchmark.added_at)


def _remove_others(out: Path, files: set[str]) -> None:
    """Pages of models that are no longer on the board, and the folders they leave empty."""
    for path in sorted((out / "models").rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(out).as_posix() not in files:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
