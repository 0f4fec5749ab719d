"""`medthink board list`: the leaderboard in the terminal."""

from typing import TYPE_CHECKING

import click

from medthink.cli.show import console, print_json, say, table
from medthink.cli.stores import open_store, store_flag

if TYPE_CHECKING:
    from medthink.board.ranking import BoardRow, Leaderboard


@click.command()
@store_flag
@click.option("--benchmark", metavar="NAME", help="Which benchmark, where the store has several.")
@click.option("--as-of", metavar="DATE", help="The board as it stood on that day, such as 2026-01-31.")
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
    columns = ("rank", "model", "team", "accuracy (95 %)", "tie group", "proof", "submissions")
    for name, rows in (("", made.rows), (" (with expert cues)", made.cued)):
        if rows or not name:
            console().print(table(title + name, columns, [_cells(row) for row in rows]))
    for row in made.withdrawn:
        say(f"Withdrawn: {row.submission.model} by {row.submission.team} ({row.submission.detail})")
    if any(row.rank != row.worst for row in made.rows):
        say("Models that share a tie group cannot be told apart on these cases.")


def _cells(row: "BoardRow") -> tuple[str, ...]:
    from medthink.scoring.scores import percent

    answers = row.scores.answers
    return (
        rank_range(row),
        row.submission.model,
        row.submission.team,
        percent(answers.accuracy) if answers else "–",
        ", ".join(row.letters) or (f"tier {row.tier}" if row.tier else "–"),
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
    """Without the per-case results, which are long; the site's JSON has them."""
    from msgspec import to_builtins

    def plain_row(row: "BoardRow") -> dict[str, object]:
        found: dict[str, object] = to_builtins(row)
        answers = row.scores.answers
        found["scores"] = to_builtins(answers)
        return found

    return {
        "benchmark": to_builtins(made.benchmark),
        "as_of": made.as_of,
        "rows": [plain_row(row) for row in made.rows],
        "cued": [plain_row(row) for row in made.cued],
        "withdrawn": [plain_row(row) for row in made.withdrawn],
    }
