"""`medthink submit score`: the score the leaderboard would give a submission."""

from pathlib import Path

import click

from medthink.cli.show import print_json, say
from medthink.core.errors import Declined


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="The benchmark it is about.")
@click.option("--split", default="test", show_default=True, help="The split it is about.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, data: Path, split: str, as_json: bool) -> None:
    """Check and score FILE as the leaderboard would. Exit code 1 if it has a problem.

    \b
    Example: medthink submit score qwen.jsonl --data bench/
    """
    from medthink.board.checking import HeldBenchmark, check_file
    from medthink.cli.score import show_scores
    from medthink.scoring.scores import to_plain

    checked = check_file(file, HeldBenchmark.open(data, split))
    if checked.scores is None:
        problems = checked.submission.problems
        raise Declined(f"{file}: {problems[0]}, and {len(problems) - 1} more", remedy="medthink submit check lists all")
    if as_json:
        print_json(to_plain(checked.scores) | {"provenance": checked.provenance, "doubts": checked.doubts})
        return
    show_scores([checked.scores], [data], slices=True)
    say(f"Provenance: {checked.provenance}")
    for doubt in checked.doubts:
        say(f"Note: {doubt}.")
