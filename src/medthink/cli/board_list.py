"""`medthink board list`: the leaderboard in the terminal."""

from typing import TYPE_CHECKING

import click

from medthink.cli.show import console, print_json, say, table
from medthink.cli.stores import open_store, store_flag

if TYPE_CHECKING:
    from medthink.board.ranking import BoardRow, Leaderboard


@click.command()
@store_flag
@click.option("--benchmark", metavar="NAME", help="Which benchmark, if the store has several.")
@click.option("--as-of", metavar="DATE", help="The board as of that day, such as 2026-01-31.")
@click.option("--published", is_flag=True, help="Also list the 59 totals published with MedThinkVQA, unranked.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(store: str, benchmark: str | None, as_of: str | None, published: bool, as_json: bool) -> None:
    """Show the leaderboard: accuracy with interval, rank range, tie group, provenance.

    \b
    Example: medthink board list --store board.sqlite
    """
    with open_store(store) as opened:
        from medthink.board.benchmarks import find_benchmark
        from medthink.board.ranking import make_leaderboard

        made = make_leaderboard(opened, find_benchmark(opened, benchmark), as_of)
    if as_json:
        print_json(_plain(made))
        return
    _show(made)
    if published:
        _show_published()


def _show(made: "Leaderboard") -> None:
    title = f"{made.benchmark.name}, {made.benchmark.split}: {made.benchmark.n_cases} cases, as of {made.as_of[:10]}"
    columns = ("rank", "model", "team", "accuracy (95 %)", "gain", "tie group", "proof", "submissions")
    for name, rows in (("", made.rows), (" (with expert cues)", made.cued), (" (a part of each case)", made.partial)):
        if rows or not name:
            console().print(table(title + name, columns, [_cells(row) for row in rows]))
    for row in made.withdrawn:
        say(f"Withdrawn: {row.submission.model} by {row.submission.team} ({row.submission.detail})")
    if any(row.rank != row.worst for row in made.rows):
        say("No model in a tie group is distinguishable from its first; the rank is a range.")
    if made.resolution:
        low, high = (f"{100 * end:.1f}" for end in made.resolution)
        say(f"Two models must differ by {low} to {high} points to be distinguished with 80 % power.")


def _cells(row: "BoardRow") -> tuple[str, ...]:
    from medthink.core.numbers import as_points
    from medthink.scoring.scores import percent

    answers, gain = row.scores.answers, row.gain.gain.value if row.gain else None
    return (
        rank_range(row),
        row.submission.model,
        row.submission.team,
        percent(answers.accuracy) if answers else "–",
        "–" if gain is None else as_points(gain),
        str(row.group or "–"),
        row.submission.provenance,
        str(row.by_team),
    )


def rank_range(row: "BoardRow") -> str:
    """`1–4`, `3`, or a dash for a row that is not ranked."""
    if row.rank is None:
        return "–"
    return str(row.rank) if row.rank == row.worst else f"{row.rank}–{row.worst}"


def _show_published() -> None:
    from medthink.board.published import load_published
    from medthink.scoring.scores import percent

    known = load_published()
    rows = [
        (one.model, " ".join([one.mode, one.effort]).strip(), percent(known.accuracy(one)), one.note)
        for one in known.results
    ]
    title = f"Reported as totals, so not ranked ({known.source}; {known.n_cases} cases)"
    console().print(table(title, ("model", "mode", "accuracy (95 %)", "note"), rows))


def _plain(made: "Leaderboard") -> dict[str, object]:
    """Without the case-by-case results, which are long."""
    from msgspec import to_builtins

    from medthink.board.exports import plain_row

    def plain(rows: "tuple[BoardRow, ...]") -> list[dict[str, object]]:
        return [
            plain_row(row)
            | {"submission": to_builtins(row.submission), "scores": to_builtins(row.scores.answers)}
            for row in rows
        ]  # fmt: skip

    return {
        "benchmark": to_builtins(made.benchmark),
        "as_of": made.as_of,
        "rows": plain(made.rows),
        "cued": plain(made.cued),
        "partial": plain(made.partial),
        "withdrawn": plain(made.withdrawn),
    }
