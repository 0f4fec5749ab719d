"""`medthink board rerun`: re-run part of a row, with a bound stated beforehand."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli.show import print_json, say
from medthink.cli.stores import open_store, store_flag
from medthink.core.errors import Declined

if TYPE_CHECKING:
    from medthink.board.rerun import RerunPlan
    from medthink.board.store import BoardStore


@click.command()
@click.argument("token")
@click.argument("run", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="The benchmark it is about.")
@click.option("--split", default="test", show_default=True, help="The split it is about.")
@click.option("--cases", default=60, show_default=True, help="How many cases to draw; at least 60.")
@click.option(
    "--bound", default=0.15, show_default=True, help="The share of answers that may differ, stated beforehand."
)
@store_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    token: str, run: Path | None, data: Path, split: str, cases: int, bound: float, store: str, as_json: bool
) -> None:
    """Draw random cases of the submission TOKEN to run again; then compare with RUN, a run of those cases.

    Without RUN the sample is drawn, sample and bound are recorded in the board's history, and the command to run is
    printed. With RUN the answers are compared. The row becomes "partly re-run" if, with confidence, no more of its
    answers than the bound would differ; otherwise the exit code is 1, and the row says what was found.

    \b
    Example: medthink board rerun Xy3… --data bench/
             medthink board rerun Xy3… again/ --data bench/
    """
    with open_store(store) as opened:
        from msgspec import to_builtins

        from medthink.board.checking import HeldBenchmark
        from medthink.board.rerun import enter_rerun, plan_rerun, tell_rerun

        if run is None:
            plan = plan_rerun(opened, token, cases=cases, bound=bound, actor="maintainer")
            command_line = _command(opened, token, plan, data)
            if as_json:
                print_json(to_builtins(plan) | {"command": command_line})
                return
            _show_plan(plan, token, data, command_line)
            return
        outcome = enter_rerun(opened, token, run, HeldBenchmark.open(data, split), actor="maintainer")
        told = tell_rerun(outcome)
        if as_json:
            print_json(to_builtins(outcome) | {"is_within": outcome.is_within})
        else:
            say(f"{told[:1].upper()}{told[1:]}.")
            say(f"Right in the submission: {outcome.right}; right when run again: {outcome.right_again}.")
        if not outcome.is_within:
            raise Declined("the row is not confirmed: more answers may differ than the bound allows")
        if not as_json:
            say("The row is now partly re-run.")


def _command(store: "BoardStore", token: str, plan: "RerunPlan", data: Path) -> str:
    from msgspec.structs import replace

    from medthink.board.records import find_submission
    from medthink.board.rerun import traced_manifest
    from medthink.report.command import reproduction_command
    from medthink.runs.selection import Selection

    found = find_submission(store, token)
    assert found is not None
    manifest = traced_manifest(store, found)
    selection = Selection(split=manifest.selection.split, cases=plan.cases)
    return reproduction_command(replace(manifest, selection=selection, benchmark=str(data)), "again")


def _show_plan(plan: "RerunPlan", token: str, data: Path, command_line: str) -> None:
    say(
        f"{len(plan.cases)} cases drawn (seed {plan.seed}); at most {plan.bound * 100:.3g} % of all answers may differ."
    )
    say("Both are now recorded in the board's history. Run the cases, adding the server's address if there is one:")
    say(f"\n  {command_line}\n")
    say(f"Then: medthink board rerun {token} again --data {data}")
