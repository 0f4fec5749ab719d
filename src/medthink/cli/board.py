"""`medthink board`: a leaderboard in one database."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.command import LazyGroup
from medthink.cli.flags import (
    FiniteFloat,
    Flag,
    OutPath,
    about_flags,
    count_flag,
    data_flag,
    json_flag,
    model_name_flag,
    open_store,
    out_file,
    out_folder,
    split_flag,
    store_flag,
    team_flag,
)
from medthink.cli.output import console, print_json, print_line, print_table
from medthink.core.errors import Declined, UsageError

if TYPE_CHECKING:
    from medthink.board.ranking import BoardRow, Leaderboard
    from medthink.board.rerun import RerunPlan
    from medthink.store.engine import Store


_benchmark_flag = Flag("--benchmark", metavar="NAME", help="Which benchmark, if the store has several.")


@click.group(
    cls=LazyGroup,
    modules={
        "add": "board:board_add",
        "list": "board:board_list",
        "build": "board:board_build",
        "rerun": "board:board_rerun",
        "withdraw": "board:board_withdraw",
        "worker": "workers:board_worker",
        "backup": "board:board_backup",
        "restore": "board:board_restore",
    },
)
def board() -> None:
    """Manage a leaderboard: add runs and submissions, rank, withdraw, back up, restore.

    \b
    Example: medthink board add runs/qwen --data bench/ --team "My lab"
    """


@click.command()
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@data_flag.but(required=True)
@split_flag
@team_flag.but(required=True, default=None)
@model_name_flag
@about_flags
@click.option("--allow-download", "allows_download", is_flag=True, help="Make the predictions public.")
@store_flag
@json_flag
def board_add(source: Path, data: Path, split: str, store: str, as_json: bool, **flags: Any) -> None:
    """Check, score and publish SOURCE: a run's folder, or a file in the submission format.

    \b
    Example: medthink board add runs/qwen --data bench/ --team "My lab"
    """
    with open_store(store, creates=True) as opened:
        from medthink.board.checking import LoadedBenchmark
        from medthink.board.publish import DirectSubmission, add_to_board
        from medthink.board.submissions import PROVENANCE, ModelDescription

        about = ModelDescription(**{name: flags.pop(name) for name in ("organisation", "family", "link")})
        addition = DirectSubmission(source=source, about=about, **flags)
        added = add_to_board(opened, LoadedBenchmark.open(data, split), addition, actor="maintainer")
        if as_json:
            from msgspec import to_builtins

            print_json(to_builtins(added))
            return
        print_line(
            f"{added.model} by {added.team}: {added.status}, {added.provenance} ({PROVENANCE[added.provenance]})."
        )
        print_line(f"Submission {added.token}; medthink board withdraw removes it again.")
        if added.detail:
            print_line(f"Note: {added.detail}.")


@click.command()
@out_file.but(type=OutPath(".zip"))
@store_flag
@json_flag
def board_backup(out: Path, store: str, as_json: bool) -> None:
    """Write the whole store to FILE as a consistent snapshot, even while others write to it.

    \b
    Example: medthink board backup -o board-2026-11-16.zip
    """
    with open_store(store) as opened:
        from medthink.store.backup import write_backup

        rows = write_backup(opened, out)
    if as_json:
        print_json({"file": str(out), "rows": rows})
        return
    print_line(f"{sum(rows.values())} rows written to {out}.")


@click.command()
@out_folder
@store_flag
@_benchmark_flag
@json_flag
def board_build(out: Path, store: str, benchmark: str | None, as_json: bool) -> None:
    """Write the leaderboard to FOLDER as static files, ready for any web server.

    The pages are those of medthink serve, readable without JavaScript, with JSON and CSV next to them. The same store
    gives the same bytes; an earlier site there is updated.

    \b
    Example: medthink board build -o site/
    """
    try:
        from medthink.web.board.static_site import build_site
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", remedy="pip install 'medthink[web,board]'") from None
    with open_store(store) as opened:
        files = build_site(opened, out, benchmark)
    if as_json:
        print_json({"folder": str(out), "files": files})
        return
    print_line(f"{files} files in {out}; open {out / 'index.html'}")


@click.command()
@store_flag
@_benchmark_flag
@click.option("--as-of", metavar="DATE", help="The board as of that day, such as 2026-01-31.")
@click.option("--published", is_flag=True, help="Also list the 59 totals published with MedThinkVQA, unranked.")
@json_flag
def board_list(store: str, benchmark: str | None, as_of: str | None, published: bool, as_json: bool) -> None:
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
    for name, rows in (
        ("", made.rows),
        (" (with expert cues)", made.cued),
        (" (shown only a part of each case)", made.partial),
    ):
        if rows or not name:
            console().print(print_table(title + name, columns, [_cells(row) for row in rows]))
    for row in made.withdrawn:
        print_line(f"Withdrawn: {row.submission.model} by {row.submission.team} ({row.submission.reason})")
    if any(row.rank != row.worst for row in made.rows):
        print_line("No model in a tie group can be distinguished from the first one of the group; ranks are ranges.")
    if made.resolution:
        low, high = (f"{100 * end:.1f}" for end in made.resolution)
        print_line(f"Two models must differ by {low} to {high} points to be distinguished with 80 % power.")


def _cells(row: "BoardRow") -> tuple[str, ...]:
    from medthink.core.numbers import as_points
    from medthink.scoring.scores import rate_text

    answers, gain = row.scores.answers, row.gain.gain.value if row.gain else None
    return (
        rank_range(row),
        row.submission.model,
        row.submission.team,
        rate_text(answers.accuracy) if answers else "–",
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
    from medthink.board.results import load_published
    from medthink.scoring.scores import rate_text

    known = load_published()
    rows = [
        (one.model, " ".join([one.mode, one.effort]).strip(), rate_text(known.accuracy(one)), one.note)
        for one in known.results
    ]
    title = f"Reported as totals, so not ranked ({known.source}; {known.n_cases} cases)"
    console().print(print_table(title, ("model", "mode", "accuracy (95 %)", "note"), rows))


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


@click.command()
@click.argument("token", metavar="SUBMISSION")
@click.argument("run", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@data_flag.but(required=True)
@split_flag
@count_flag("cases to draw; at least 60", default=60, show_default=True)
@click.option(
    "--max-differing", default=0.15, show_default=True, type=FiniteFloat(0, 1), metavar="SHARE",
    help="The largest share of answers that may differ; recorded before the re-run.",
)  # fmt: skip
@store_flag
@json_flag
def board_rerun(token: str, run: Path | None, data: Path, split: str, store: str, as_json: bool, **drawn: Any) -> None:
    """Draw random cases of SUBMISSION, named by its token, to run again; then compare with RUN, a run of those cases.

    Without RUN the sample is drawn, sample and bound are recorded in the board's history, and the command to run is
    printed. With RUN the answers are compared. The row becomes "partly re-run" if, with confidence, no more of its
    answers than the bound would differ; otherwise the exit code is 1, and the row shows the result.

    \b
    Example: medthink board rerun Xy3… --data bench/
             medthink board rerun Xy3… again/ --data bench/
    """
    with open_store(store) as opened:
        from msgspec import to_builtins

        from medthink.board.checking import LoadedBenchmark
        from medthink.board.rerun import describe_rerun, plan_rerun, record_rerun

        if run is None:
            plan = plan_rerun(opened, token, cases=drawn["count"], bound=drawn["max_differing"], actor="maintainer")
            command_line = _command(opened, token, plan, data)
            if as_json:
                print_json(to_builtins(plan) | {"command": command_line})
                return
            _show_plan(plan, token, data, command_line)
            return
        outcome = record_rerun(opened, token, run, LoadedBenchmark.open(data, split), actor="maintainer")
        told = describe_rerun(outcome)
        if as_json:
            print_json(to_builtins(outcome) | {"is_within": outcome.is_within})
        else:
            print_line(f"{told[:1].upper()}{told[1:]}.")
            print_line(f"Right in the submission: {outcome.right}; right when run again: {outcome.right_again}.")
        if not outcome.is_within:
            raise Declined("the row is not confirmed: more answers could differ than the bound allows")
        if not as_json:
            print_line("The row is now partly re-run.")


def _command(store: "Store", token: str, plan: "RerunPlan", data: Path) -> str:
    from msgspec.structs import replace

    from medthink.board.rerun import traced_manifest
    from medthink.board.submissions import find_submission
    from medthink.report.provenance import reproduction_command
    from medthink.runs.selection import Selection

    found = find_submission(store, token)
    assert found is not None
    manifest = traced_manifest(store, found)
    selection = Selection(split=manifest.selection.split, cases=plan.cases)
    return reproduction_command(replace(manifest, selection=selection, benchmark=str(data)), "again")


def _show_plan(plan: "RerunPlan", token: str, data: Path, command_line: str) -> None:
    print_line(
        f"{len(plan.cases)} cases drawn (seed {plan.seed}); at most {plan.bound * 100:.3g} % of all answers may differ."
    )
    print_line(
        "Both are now recorded in the board's history. Run the cases, adding the server's address if there is one:"
    )
    print_line(f"\n  {command_line}\n")
    print_line(f"Then: medthink board rerun {token} again --data {data}")


@click.command()
@click.argument("backup", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@store_flag
@json_flag
def board_restore(backup: Path, store: str, as_json: bool) -> None:
    """Fill an empty store from BACKUP; a SQLite backup may go into PostgreSQL and vice versa.

    \b
    Example: medthink board restore board-2026-11-16.zip --store new.sqlite
    """
    with open_store(store, creates=True) as opened:
        from medthink.store.backup import restore_backup

        rows = restore_backup(backup, opened)
    if as_json:
        print_json({"store": store, "rows": rows})
        return
    print_line(f"{sum(rows.values())} rows restored.")


@click.command()
@click.argument("token", metavar="SUBMISSION")
@click.option("--reason", required=True, metavar="TEXT", help="The reason, shown with the row.")
@store_flag
@json_flag
def board_withdraw(token: str, reason: str, store: str, as_json: bool) -> None:
    """Take SUBMISSION, named by its token, off the ranking; its row stays and says why.

    \b
    Example: medthink board withdraw Xy3… --reason "trained on the test split"
    """
    with open_store(store) as opened:
        from medthink.board.moderation import withdraw

        gone = withdraw(opened, token, actor="maintainer", why=reason)
    if as_json:
        print_json({"token": gone.token, "status": gone.status, "reason": gone.reason})
        return
    print_line(f"{gone.model} by {gone.team} is withdrawn: {gone.reason}")
