"""`medthink run --shards N --on ray`: a run made in shards on a cluster, and made whole."""

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from medthink.cli.live import describe_states
from medthink.cli.run_views import show_progress
from medthink.cli.show import print_json, say
from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.run import Run
    from medthink.runs.shards import ShardEnd
    from medthink.runs.spec import RunSpec


def read_shards(flags: dict[str, Any], *, goal: str | None) -> int | None:
    """Into how many shards the flags split the run; None for a run made here. Takes what it uses out of them."""
    on, count = flags.pop("on"), flags.pop("shards")
    if (on is None) != (count is None):
        raise UsageError("--shards and --on go together", remedy="give both, such as --shards 4 --on ray, or neither")
    if on is None:
        return None
    given = {"--shard": flags["shard"], "--batch": flags["batch"], "--until-known": goal}
    if strange := [name for name, value in given.items() if value]:
        raise UsageError(f"{strange[0]} does not go with --on", remedy=f"leave out {strange[0]}, or --shards and --on")
    return int(count)


def carry_out_shards(spec: "RunSpec", transport: "Transport", count: int, *, as_json: bool) -> "Run":
    """Make the shards on the cluster and put them together; the first error or limit is raised when all have ended."""
    from medthink.bridges.cluster import run_shards
    from medthink.runs.shards import merge_split, shards_folder

    assert spec.out is not None
    say(f"{spec.model} · {spec.task} · {spec.condition.label()} → {spec.out}, {count} shards on Ray", stderr=True)
    try:
        ends = run_shards(spec, transport, count, _tell)
    except KeyboardInterrupt:
        say(f"Stopped. {shards_folder(spec.out)} keeps the shards; the same command goes on.", stderr=True)
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
        say(f"Caution: shard {end.shard}: {warning}", stderr=True)
    if end.progress is not None:
        done, states = sum(end.progress.states.values()), describe_states(end.progress.states)
        say(f"shard {end.shard}: {done:,} of {end.progress.cases:,} done: {states}", stderr=True)
