"""`medthink run --shards N --on ray`: a run made in shards on a cluster, and made whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from medthink.cli.output import describe_states, print_json, print_line
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.manifest import RunSpec
    from medthink.runs.run import Run
    from medthink.runs.shards import ShardEnd


def read_shards(flags: dict[str, Any], *, goal: str | None) -> int | None:
    """Into how many shards the flags split the run; None for a run made here. Takes what it uses out of them."""
    on, count = flags.pop("on"), flags.pop("shards")
    if (on is None) != (count is None):
        raise UsageError(
            "--shards requires --on, and --on requires --shards",
            remedy="give both, such as --shards 4 --on ray, or neither",
        )
    if on is None:
        return None
    given = {"--shard": flags["shard"], "--batch": flags["batch"], "--until-known": goal}
    if strange := [name for name, value in given.items() if value]:
        raise UsageError(
            f"{strange[0]} cannot be combined with --on", remedy=f"leave out {strange[0]}, or --shards and --on"
        )
    return int(count)


def carry_out_shards(spec: "RunSpec", transport: "Transport", count: int, *, as_json: bool) -> "Run":
    """Make the shards on the cluster and put them together; the first error or limit is raised when all have ended."""

    from medthink.bridges.ray_cluster import run_shards
    from medthink.cli.run.display import show_progress
    from medthink.runs.shards import merge_split, shards_folder

    assert spec.out is not None
    print_line(
        f"{spec.model} · {spec.task} · {spec.condition.label()} → {spec.out}, {count} shards on Ray", stderr=True
    )
    try:
        ends = run_shards(spec, transport, count, _tell)
    except KeyboardInterrupt:
        print_line(
            f"Stopped. {shards_folder(spec.out)} keeps the shards; run the same command again to continue.", stderr=True
        )
        raise
    for end in ends:
        if stop := end.error or end.stopped_by:
            stop.problem = f"shard {end.shard}: {stop.problem}"
            raise stop
    run = merge_split(spec, count)
    if as_json:
        made = sum(end.calls_made for end in ends)
        print_json(to_builtins(run.manifest) | {"run": str(run.path), "calls_made_now": made})
    else:
        show_progress(run.path, run.manifest)
    return run


def _tell(end: "ShardEnd") -> None:
    for warning in end.warnings:
        print_line(f"Caution: shard {end.shard}: {warning}", stderr=True)
    if end.progress is not None:
        done, states = sum(end.progress.states.values()), describe_states(end.progress.states)
        print_line(f"shard {end.shard}: {done:,} of {end.progress.cases:,} done: {states}", stderr=True)


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def merge(out: Path, shards: tuple[Path, ...], as_json: bool) -> None:
    """Combine SHARDS, made by `medthink run --shard i/n`, into the run OUT.

    They must be shards of one run, disjoint, complete and finished; otherwise nothing is written.

    Example: medthink merge runs/whole runs/part1 runs/part2
    """

    from medthink.cli.run.display import show_progress
    from medthink.runs.shards import merge_shards

    run = merge_shards(out, list(shards))
    if as_json:
        print_json(to_builtins(run.manifest) | {"run": str(run.path)})
    else:
        show_progress(run.path, run.manifest)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="RUN", required=True,
    help="The run's folder; for a log of another task, the file to write the answers to.",
)  # fmt: skip
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DATA",
    help="The benchmark that the log was made on, if it has moved.",
)
def import_replies(file: Path, out: Path, data: Path | None) -> None:
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
        raise UsageError("--data only applies to an Inspect log", remedy="leave it out")
    from medthink.runs.batches.run import import_output

    taken = import_output(out, file)
    left = f", {taken.waiting:,} still waiting" if taken.waiting else ""
    print_line(f"{taken.answered:,} requests answered{left}; to continue: medthink run {out / 'plan.toml'}")


def _take_in_log(file: Path, out: Path, data: Path | None) -> None:
    from medthink.bridges.inspect.import_log import import_log

    taken = import_log(file, out, data)
    if taken.run is None:
        print_line(f"{taken.answers:,} answers → {out}; next: medthink score {out} --data DATA")
        return
    made = taken.run.manifest.progress
    assert made is not None
    states = ", ".join(f"{count:,} {state}" for state, count in made.states.items())
    predictions, calls = count_of(made.cases, "prediction"), count_of(sum(made.calls.values()), "call")
    print_line(f"{predictions} ({states}), {calls} → {out}; next: medthink score {out}")
