"""`medthink submit check`: all problems of a submission at once, found by the same code as on the server."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli.show import print_json, say
from medthink.core.errors import Declined

if TYPE_CHECKING:
    from medthink.board.checking import Checked

_MOST_SHOWN = 100


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="The benchmark it is about.")
@click.option("--split", default="test", show_default=True, help="The split it is about.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, data: Path, split: str, as_json: bool) -> None:
    """Check FILE against the benchmark: every problem by line and field. Exit code 1 if there is one.

    Answer keys in FILE are never read.

    \b
    Example: medthink submit check qwen.jsonl --data bench/
    """
    from medthink.board.checking import HeldBenchmark, check_file

    checked = check_file(file, HeldBenchmark.open(data, split))
    if as_json:
        print_json(_plain(checked))
    else:
        _show(checked)
    if problems := len(checked.submission.problems):
        raise Declined(f"{file}: {problems} problem{'s' if problems > 1 else ''}", remedy="fix them and check again")


def _show(checked: "Checked") -> None:
    from medthink.scoring.submission import problem_lines

    lines = list(problem_lines(checked.submission.problems))
    for line in lines[:_MOST_SHOWN]:
        say(line)
    if len(lines) > _MOST_SHOWN:
        say(f"… and {len(lines) - _MOST_SHOWN} more; --json lists them all")
    if not lines:
        from medthink.board.provenance import PROVENANCE

        say(f"No problems in {checked.submission.n_lines} lines.")
        say(f"Provenance: {checked.provenance} ({PROVENANCE[checked.provenance]}).")
        for doubt in checked.doubts:
            say(f"Note: {doubt}.")


def _plain(checked: "Checked") -> dict[str, object]:
    from msgspec import to_builtins

    return {
        "lines": checked.submission.n_lines,
        "problems": to_builtins(checked.submission.problems),
        "provenance": checked.provenance,
        "doubts": checked.doubts,
    }
