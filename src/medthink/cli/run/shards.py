"""`medthink run --shards N --cluster ray`: a run made in shards on a cluster, then merged."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from medthink.cli.flags import RUN, json_flag, out_folder, out_run
from medthink.cli.output import describe_states, print_json, print_line
from medthink.core.errors import UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.manifest import RunSpec
    from medthink.runs.run import Run
    from medthink.runs.shards import ShardEnd


def read_shards(flags: dict[str, Any], *, goal: str | None) -> int | None:
    """The number of shards from the flags; None for a run on this machine. Takes what it uses out of them."""
    cluster, count = flags.pop("cluster"), flags.pop("shards")
    if (cluster is None) != (count is None):
        remedy = "give both, such as --shards 4 --cluster ray, or neither"
        raise UsageError("--shards requires --cluster, and --cluster requires --shards", remedy=remedy)
    if cluster is None:
        return None
    given = {"--shard": flags["shard"], "--batch": flags["batch"], "--stop-when": goal}
    if strange := [name for name, value in given.items() if value]:
        remedy = f"leave out {strange[0]}, or --shards and --cluster"
        raise UsageError(f"{strange[0]} cannot be combined with --cluster", remedy=remedy)
    return int(count)


def carry_out_shards(spec: "RunSpec", transport: "Transport", count: int, *, as_json: bool) -> "Run":
    """Run the shards on the cluster and merge them; the first error or limit is raised when all have ended."""

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
@click.argument("shards", nargs=-1, required=True, type=RUN)
@out_run.but(required=True)
@json_flag
def merge(out: Path, shards: tuple[Path, ...], as_json: bool) -> None:
    """Combine SHARDS, made by `medthink run --shard i/n`, into one run.

    They must be shards of one run, disjoint, complete and finished; otherwise nothing is written.

    \b
    Example: medthink merge runs/part1 runs/part2 -o runs/whole
    """

    from medthink.cli.run.display import show_progress
    from medthink.runs.shards import merge_shards

    run = merge_shards(out, list(shards))
    if as_json:
        print_json(to_builtins(run.manifest) | {"run": str(run.path)})
    else:
        show_progress(run.path, run.manifest)


@click.command(name="salvage")
@click.argument("folder", metavar="RUN", type=RUN)
@out_folder
@json_flag
def salvage_run(folder: Path, out: Path, as_json: bool) -> None:
    """Rebuild the damaged ledger of RUN in a new folder, from every row that can be read and is unaltered.

    RUN is not changed. The command that made it continues the new folder: only lost calls are asked again.

    \b
    Example: medthink salvage runs/qwen -o runs/qwen-salvaged
    """
    from medthink.runs.ledger.salvage import salvage

    found = salvage(folder, out)
    if as_json:
        print_json([one._asdict() for one in found])
        return
    for one in found:
        kept = f"{count_of(one.calls, 'call')} and {count_of(one.predictions, 'prediction')} kept"
        print_line(f"{one.name}: {kept}, {count_of(one.lost_calls, 'call')} lost → {out}")
    print_line(f"The same command as before with --out {out} continues; calls that are lost are asked again.")
