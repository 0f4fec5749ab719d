"""`medthink import`: replies from another program, imported into a run."""

from pathlib import Path

import click

from medthink.cli.show import say


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), metavar="RUN", required=True, help="The run's folder.")
def command(file: Path, out: Path) -> None:
    """Import replies to a run's requests: the output of vllm run-batch.

    \b
    Example: medthink import output.jsonl --out runs/qwen
    """
    from medthink.runs.manual import take_in_output

    taken = take_in_output(out, file)
    left = f", {taken.waiting:,} still waiting" if taken.waiting else ""
    say(f"{taken.answered:,} requests answered{left}; to continue: medthink run {out / 'plan.toml'}")
