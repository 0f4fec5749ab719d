"""`medthink sweep`: many runs over one benchmark as one unit that can be stopped and continued."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.show import console, print_json, say, table
from medthink.core.errors import MedThinkError, OutsideError, PartlyFailed, UsageError
from medthink.core.numbers import as_usd, count_of

if TYPE_CHECKING:
    from medthink.report.entries import Entry
    from medthink.runs.rehearsal import Rehearsal
    from medthink.runs.sweep import SweepSession, SweepSpec

_FIGURE = "overview.svg"


@click.command()
@click.argument("plan", metavar="PLAN.toml", required=False, type=click.Path(path_type=Path))
@click.option("--max-usd", type=float, metavar="USD", help="Stop before all runs together cost more than this.")
@click.option("--max-calls", type=click.IntRange(0), metavar="N", help="Stop after this many calls in total.")
@click.option("--dry-run", is_flag=True, help="Count what is left to do in every run; send nothing.")
@click.option("--status", type=click.Path(path_type=Path), metavar="SWEEP", help="Show a sweep's progress, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sweep(
    plan: Path | None,
    max_usd: float | None,
    max_calls: int | None,
    dry_run: bool,
    status: Path | None,
    as_json: bool,
) -> None:
    """Run models × conditions × tasks over one benchmark, as PLAN.toml says.

    The fields are the flags of `medthink run`; a list means one run for each value. Every model of a block [[models]]
    is run under every condition of a block [[conditions]]; [[runs]] adds single runs. Identical calls of several runs
    are made and paid for once. Run the same command again to continue.

    \b
    Example: medthink sweep shares.toml --dry-run
    Example: medthink sweep shares.toml --max-usd 50
    Example: medthink sweep --status sweeps/shares
    """
    if status is not None:
        _show_status(status, as_json=as_json)
        return
    if plan is None:
        raise UsageError("missing: PLAN.toml", remedy="medthink sweep --help shows an example")
    from msgspec.structs import replace

    from medthink.cli.sweep_plan import read_sweep_plan

    spec = read_sweep_plan(plan)
    given = {name: value for name, value in (("max_usd", max_usd), ("max_calls", max_calls)) if value is not None}
    spec = replace(spec, **given)
    if dry_run:
        _show_estimates(spec, as_json=as_json)
    else:
        _carry_out(spec, as_json=as_json)


def _carry_out(spec: "SweepSpec", *, as_json: bool) -> None:
    from medthink.cli.live import follow
    from medthink.runs.sweep import carry_out_sweep
    from medthink.runs.sweep_counts import SweepCounts

    counts = SweepCounts()
    say(f"{len(spec.runs)} runs → {spec.out}", stderr=True)
    with follow(spec.out, counts.total):
        session = carry_out_sweep(spec, counts)
    _show(spec, session, as_json=as_json)
    if session.stopped_by is not None:
        raise session.stopped_by
    _refuse_errors(session)
    _refuse_failures(session)


def _refuse_errors(session: "SweepSession") -> None:
    """Tell each run's error once; one with the highest exit code is raised, the others are printed before it."""
    told = [_name_error(one.name, one.error) for one in session.runs if one.error is not None]
    if not told:
        return
    *others, worst = sorted(told, key=lambda error: error.exit_code)
    for error in others:
        say(str(error), stderr=True)
    raise worst


def _name_error(run: str, error: MedThinkError) -> MedThinkError:
    """The error that ended a run, with the run's name before it."""
    kind = OutsideError if isinstance(error, OutsideError) else MedThinkError
    return kind(f"{run}: {error}")


def _refuse_failures(session: "SweepSession") -> None:
    """Exit with 3 if no case of some run was answered, and with 4 if some predictions failed."""
    ended = ((one.name, one.session.run.manifest.progress) for one in session.runs if one.session is not None)
    made = {name: progress for name, progress in ended if progress is not None}
    if silent := [name for name, progress in made.items() if set(progress.states) == {"failed"}]:
        remedy = f"medthink show {silent[0]} --failed, in the sweep's folder, says why"
        raise OutsideError(f"no case was answered: {', '.join(silent)}", remedy=remedy)
    failed = sum(progress.states.get("failed", 0) for progress in made.values())
    if failed:
        raise PartlyFailed(
            f"{failed:,} of {sum(progress.cases for progress in made.values()):,} predictions failed",
            remedy="medthink show RUN --failed says why; the same command retries them",
        )


def _show(spec: "SweepSpec", session: "SweepSession", *, as_json: bool) -> None:
    entries, figure, why = _draw([run.folder for run in spec.runs if _has_results(run.folder)], spec.out / _FIGURE)
    if as_json:
        runs = [{"name": one.name, "error": str(one.error) if one.error else None} for one in session.runs]
        told = to_builtins(session.manifest) | {"sweep": str(spec.out), "ended": runs}
        print_json(told | {"figure": None if figure is None else str(figure)})
        return
    _print_runs(spec, session, entries)
    manifest = session.manifest
    shared = f"{_count_shared(spec):,} more shared"
    paid = as_usd(manifest.paid_usd, is_least=manifest.is_least_paid)
    say(f"{count_of(manifest.calls_made, 'call')} made in all sessions, {shared}; cost: {paid}")
    for one in session.runs:
        for warning in one.session.warnings if one.session is not None else ():
            say(f"Caution: {one.name}: {warning}", stderr=True)
    say(f"Figure: {figure}" if figure is not None else f"No figure: {why}")


def _print_runs(spec: "SweepSpec", session: "SweepSession", entries: "dict[str, Entry]") -> None:
    from medthink.cli.live import describe_states
    from medthink.scoring.scores import percent

    rows = []
    for one in session.runs:
        entry = entries.get(one.name)
        progress = one.session.run.manifest.progress if one.session else None
        state = "stopped by an error" if one.error else "not begun" if progress is None else ""
        accuracy = percent(entry.accuracy) if entry is not None and entry.scores.answers else "–"
        done = f"{sum(progress.states.values()):,} of {progress.cases:,}" if progress else "–"
        rows.append((one.name, done, state or describe_states(progress.states if progress else {}), accuracy))
    console().print(table(str(spec.out), ("run", "cases", "states", "accuracy (95 %)"), rows, right=(1,)))


def _draw(runs: list[Path], figure: Path) -> "tuple[dict[str, Entry], Path | None, str]":
    """The entries of the runs that have results, by name, and the figure of the finished ones, or why there is none."""
    if not runs:
        return {}, None, "no run has results"
    from medthink.report.entries import group_entries, load_entries
    from medthink.report.figures.overview import overview_drawing
    from medthink.report.figures.style import save_drawing

    try:
        loaded = load_entries(tuple(runs), None)
    except MedThinkError as error:
        return {}, None, error.problem
    entries = {path.name: entry for path, entry in zip(runs, loaded, strict=True)}
    whole = [entry for entry in loaded if entry.scores.partial is None]
    if not whole:
        return entries, None, "no run is finished"
    try:
        save_drawing(overview_drawing(group_entries(whole)), figure)
    except MedThinkError as error:
        return entries, None, error.problem
    return entries, figure, ""


def _has_results(folder: Path) -> bool:
    from medthink.runs.manifest import read_manifest

    progress = read_manifest(folder).progress if (folder / "run.json").is_file() else None
    return progress is not None and bool(progress.states)


def _count_shared(spec: "SweepSpec") -> int:
    from medthink.runs.records import LEDGER, Records

    shared = 0
    for run in spec.runs:
        if (run.folder / LEDGER).is_file():
            records = Records.open(run.folder)
            shared += records.shared_calls()
            records.close()
    return shared


def _show_estimates(spec: "SweepSpec", *, as_json: bool) -> None:
    from medthink.runs.rehearsal import SweepRehearsal, estimate
    from medthink.runs.siblings import Siblings

    siblings = Siblings(run.folder for run in spec.runs)
    rehearsal = SweepRehearsal(siblings)
    try:
        made = {run.name: estimate(run.spec, transport=run.transport, sweep=rehearsal) for run in spec.runs}
    finally:
        siblings.close()
    costs = [one.cost_usd for one in made.values()]
    total = None if None in costs else sum(cost for cost in costs if cost)
    if as_json:
        print_json({"runs": to_builtins(made), "calls": sum(one.calls for one in made.values()), "cost_usd": total})
        return
    rows = [(name, *_counted([one]), as_usd(one.cost_usd)) for name, one in made.items()]
    rows.append(("all", *_counted(list(made.values())), as_usd(total)))
    columns = ("run", "calls left", "images", "input tokens", "output tokens", "cost")
    console().print(table(f"{spec.out}: estimated", columns, rows, right=range(1, 6)))
    say("Identical calls of several runs are counted once, in the first of them. Hidden reasoning is not included.")


def _counted(made: "list[Rehearsal]") -> tuple[str, str, str, str]:
    """Total calls, images and tokens of these rehearsals."""
    calls, images = sum(one.calls for one in made), sum(one.images for one in made)
    tokens = sum(one.input_tokens for one in made), sum(one.output_tokens for one in made)
    return f"{calls:,}", f"{images:,}", f"{tokens[0]:,}", f"{tokens[1]:,}"


def _show_status(folder: Path, *, as_json: bool) -> None:
    from medthink.cli.live import describe, describe_finished
    from medthink.runs.sweep_counts import read_sweep, read_sweep_status

    counts = read_sweep_status(folder)
    if as_json:
        print_json(to_builtins(read_sweep(folder)) | {"live": counts.snapshot()})
        return
    state = f"running: {counts.phase}: {describe_finished(counts)}" if counts.is_running else "not running"
    rows = [("state", state), ("runs", counts.detail or f"{len(read_sweep(folder).runs)} planned"), *describe(counts)]
    console().print(table(str(folder), ("", ""), rows))
