"""`medthink import`: replies from another program, imported into a run."""

from pathlib import Path

import click

from medthink.cli.show import say
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="RUN", required=True,
    help="The run's folder; of a log of another task, the file of answers.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DATA", help="Where the benchmark of a log is, if it has moved."
)
def command(file: Path, out: Path, data: Path | None) -> None:
    """Import what another program made: the output of vllm run-batch, or a log of Inspect AI (LOG.eval).

    A log of MedThink's own tasks becomes a run with every call. Of any other log the answers are kept, as a file that
    medthink score reads.

    \b
    Example: medthink import output.jsonl --out runs/qwen
    Example: medthink import logs/2026-11-17_answer.eval --out runs/gpt
    """
    if file.suffix == ".eval":
        _take_in_log(file, out, data)
        return
    if data is not None:
        raise UsageError("--data goes with a log of Inspect's", remedy="leave it out")
    from medthink.runs.manual import take_in_output

    taken = take_in_output(out, file)
    left = f", {taken.waiting:,} still waiting" if taken.waiting else ""
    say(f"{taken.answered:,} requests answered{left}; to continue: medthink run {out / 'plan.toml'}")


def _take_in_log(file: Path, out: Path, data: Path | None) -> None:
    from medthink.bridges.inspect.taking import take_in_log

    taken = take_in_log(file, out, data)
    if taken.run is None:
        say(f"{taken.answers:,} answers → {out}; next: medthink score {out} --data DATA")
        return
    made = taken.run.manifest.progress
    assert made is not None
    states = ", ".join(f"{count:,} {state}" for state, count in made.states.items())
    predictions, calls = count_of(made.cases, "prediction"), count_of(sum(made.calls.values()), "call")
    say(f"{predictions} ({states}), {calls} → {out}; next: medthink score {out}")
