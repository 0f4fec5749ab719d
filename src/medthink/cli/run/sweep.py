"""`medthink sweep`: many runs over one benchmark as one unit that can be stopped and continued."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from medthink.cli.command import HELP_FLAGS, PlanCommand
from medthink.cli.flags import (
    dry_run_flag,
    json_flag,
    max_calls_flag,
    max_usd_flag,
    quiet_flag,
    read_transport,
    verbose_flag,
)
from medthink.cli.output import console, print_json, print_line, print_table
from medthink.cli.run.run import LISTS, Fields, check_fields, flags_of, name_run, read_spec, slug
from medthink.cli.run.run import run as run_command
from medthink.core.errors import DataError, MedThinkError, OutsideError, PartlyFailed, UsageError, suggest
from medthink.core.jsonio import read_toml
from medthink.core.numbers import as_usd, count_of

if TYPE_CHECKING:
    from medthink.report.runs import ReportRun
    from medthink.runs.dry_run import DryRun
    from medthink.runs.sweep import SweepRun, SweepSession, SweepSpec

_FIGURE = "overview.svg"
_SHORTEST_NAME = 12


@click.command(cls=PlanCommand)
@click.argument("plan", metavar="PLAN.toml", type=click.Path(path_type=Path))
@max_usd_flag
@max_calls_flag
@dry_run_flag
@quiet_flag
@verbose_flag
@json_flag
def sweep(
    plan: Path,
    max_usd: float | None,
    max_calls: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run models × conditions × tasks over one benchmark, as described in PLAN.toml.

    The fields are the flags of `medthink run`; a list means one run for each value. Every model of a block [[models]]
    is run under every condition of a block [[conditions]]; [[runs]] adds single runs. Identical calls of several runs
    are made and paid for once. Run the same command again to continue.

    \b
    Example: medthink sweep shares.toml --dry-run
    Example: medthink sweep shares.toml --max-usd 50
    """
    from msgspec.structs import replace

    spec = read_sweep_plan(plan)
    given = {name: value for name, value in (("max_usd", max_usd), ("max_calls", max_calls)) if value is not None}
    spec = replace(spec, **given)
    if dry_run:
        _show_estimates(spec, as_json=as_json)
    else:
        _carry_out(spec, as_json=as_json)


def _carry_out(spec: "SweepSpec", *, as_json: bool) -> None:
    from medthink.cli.output import follow
    from medthink.runs.sweep import SweepCounts, run_sweep

    counts = SweepCounts()
    print_line(f"{len(spec.runs)} runs → {spec.out}", stderr=True)
    with follow(spec.out, counts.total, as_json=as_json):
        session = run_sweep(spec, counts)
    _show(spec, session, as_json=as_json)
    if session.stopped_by is not None:
        raise session.stopped_by
    _refuse_errors(session)
    _refuse_failures(session)


def _refuse_errors(session: "SweepSession") -> None:
    """Print each run's error once; one with the highest exit code is raised, the others are printed before it."""
    told = [_name_error(one.name, one.error) for one in session.runs if one.error is not None]
    if not told:
        return
    *others, worst = sorted(told, key=lambda error: error.exit_code)
    for error in others:
        print_line(str(error), stderr=True)
    raise worst


def _name_error(run: str, error: MedThinkError) -> MedThinkError:
    """The error that ended a run, with the run's name before it."""
    kind = OutsideError if isinstance(error, OutsideError) else MedThinkError
    command = click.get_current_context().command
    assert isinstance(command, PlanCommand)
    said = str(error).partition("\n  → ")[0]
    return kind(f"{run}: {said}", remedy=command.by_field(error.remedy))


def _refuse_failures(session: "SweepSession") -> None:
    """Exit with 3 if no case of some run was answered, and with 4 if some predictions failed."""
    ended = ((one.name, one.session.run.manifest.progress) for one in session.runs if one.session is not None)
    made = {name: progress for name, progress in ended if progress is not None}
    if silent := [name for name, progress in made.items() if set(progress.states) == {"failed"}]:
        remedy = f"medthink show {silent[0]} --failed, in the sweep's folder, shows why"
        raise OutsideError(f"no case was answered: {', '.join(silent)}", remedy=remedy)
    failed = sum(progress.states.get("failed", 0) for progress in made.values())
    if failed:
        raise PartlyFailed(
            f"{failed:,} of {sum(progress.cases for progress in made.values()):,} predictions failed",
            remedy="medthink show RUN --failed shows why; the same command retries them",
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
    if manifest.unpriced:
        known = as_usd(manifest.known_usd, is_least=manifest.is_least_paid)
        paid = f"{known}, without what {', '.join(manifest.unpriced)} cost: no price is known"
    print_line(f"{count_of(manifest.calls_made, 'call')} made in all sessions, {shared}; cost: {paid}")
    for one in session.runs:
        for warning in one.session.warnings if one.session is not None else ():
            print_line(f"Caution: {one.name}: {warning}", stderr=True)
    print_line(f"Figure: {figure}" if figure is not None else f"No figure: {why}")


def _print_runs(spec: "SweepSpec", session: "SweepSession", entries: "dict[str, ReportRun]") -> None:
    from medthink.cli.output import describe_states
    from medthink.scoring.scores import rate_text

    rows = []
    for one in session.runs:
        entry = entries.get(one.name)
        progress = one.session.run.manifest.progress if one.session else None
        state = "stopped by an error" if one.error else "not begun" if progress is None else ""
        accuracy = rate_text(entry.accuracy) if entry is not None and entry.scores.answers else "–"
        done = f"{sum(progress.states.values()):,} of {progress.cases:,}" if progress else "–"
        rows.append((one.name, done, state or describe_states(progress.states if progress else {}), accuracy))
    columns = ("run", "cases", "states", "accuracy (95 %)")
    rows = [(name, *rest) for name, rest in zip(fit_names(columns, rows), (row[1:] for row in rows), strict=True)]
    console().print(print_table(str(spec.out), columns, rows, right=(1,)))


def fit_names(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The names of the runs, in a form that leaves the table one line for each.

    Where they are too long, first the words that all of them share are left out, then the middle.
    """
    beside = sum(max(map(len, cells)) + 2 for cells in list(zip(columns, *rows, strict=True))[1:])
    room = max(_SHORTEST_NAME, console().width - beside)
    names = [name for name, *_ in rows]
    if max(map(len, names), default=0) > room and len(names) > 1:
        shared = set.intersection(*(set(name.split("_")) for name in names))
        names = ["_".join(word for word in name.split("_") if word not in shared) or name for name in names]
    half = room // 2
    return [name if len(name) <= room else f"{name[: room - half]}…{name[len(name) - half + 1 :]}" for name in names]


def _draw(runs: list[Path], figure: Path) -> "tuple[dict[str, ReportRun], Path | None, str]":
    """The entries of the runs with results, by name, and the figure of the finished ones, or why there is none."""
    if not runs:
        return {}, None, "no run has results"
    from medthink.report.figures.overview import overview_drawing
    from medthink.report.figures.style import save_drawing
    from medthink.report.runs import group_entries, load_entries

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
    from medthink.runs.ledger.queries import LEDGER, LedgerQueries

    shared = 0
    for run in spec.runs:
        if (run.folder / LEDGER).is_file():
            records = LedgerQueries.open(run.folder)
            shared += records.shared_calls()
            records.close()
    return shared


def _show_estimates(spec: "SweepSpec", *, as_json: bool) -> None:
    from medthink.runs.calls.asking import SharedCalls
    from medthink.runs.dry_run import SweepDryRun, estimate

    siblings = SharedCalls(run.folder for run in spec.runs)
    rehearsal = SweepDryRun(siblings)
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
    console().print(print_table(f"{spec.out}: estimated", columns, rows, right=range(1, 6)))
    print_line(
        "Identical calls of several runs are counted once, in the first of them. Hidden reasoning is not included."
    )


def _counted(made: "list[DryRun]") -> tuple[str, str, str, str]:
    """Total calls, images and tokens of these dry runs."""
    calls, images = sum(one.calls for one in made), sum(one.images for one in made)
    tokens = sum(one.input_tokens for one in made), sum(one.output_tokens for one in made)
    return f"{calls:,}", f"{images:,}", f"{tokens[0]:,}", f"{tokens[1]:,}"


_BLOCKS = ("models", "conditions", "runs")
# Flags of the sweep as a whole, not of its runs.
_OF_THE_SWEEP = ("data", "out", "max_usd", "max_calls")


def read_sweep_plan(file: Path) -> "SweepSpec":
    """The sweep of a plan file, or DataError naming the invalid field."""
    from medthink.runs.sweep import SweepSpec

    plan = {name.replace("-", "_"): value for name, value in read_toml(file).items()}
    whole = {name: plan.pop(name, None) for name in _OF_THE_SWEEP}
    blocks = {name: _read_blocks(plan.pop(name, []), name, file) for name in _BLOCKS}
    for name in ("data", "out"):
        if not isinstance(whole[name], str):
            raise DataError(f"{name} is missing", file=file, field=name, remedy=f'write {name} = "FOLDER"')
    folder = file.parent / whole["out"]
    planned = dict(_name_runs(_combine(blocks, file), file))
    limits = {name: _number(whole[name], name, file) for name in ("max_usd", "max_calls")}
    runs = tuple(
        _read_run(name, plan | fields, file.parent / whole["data"], folder / name, file)
        for name, fields in planned.items()
    )
    max_calls = limits["max_calls"]
    return SweepSpec(
        out=folder, runs=runs, max_usd=limits["max_usd"], max_calls=None if max_calls is None else int(max_calls)
    )


def _read_blocks(value: Any, name: str, file: Path) -> list[Fields]:
    """The blocks of a kind, with each list expanded; a bare name is a block with that model."""
    blocks = [
        {"model": one} if isinstance(one, str) else one for one in (value if isinstance(value, list) else [value])
    ]
    if not all(isinstance(one, dict) for one in blocks):
        raise DataError("not a list of tables", file=file, field=name, remedy=f"write [[{name}]] above each")
    plain = ({key.replace("-", "_"): field for key, field in block.items()} for block in blocks)
    return [spread for block in plain for spread in _spread(block)]


def _spread(block: Fields) -> Iterator[Fields]:
    """The block once for every combination of the values in its lists."""
    choices = [value if isinstance(value, list) and name not in LISTS else [value] for name, value in block.items()]
    for values in product(*choices):
        yield dict(zip(block, values, strict=True))


def _combine(blocks: dict[str, list[Fields]], file: Path) -> Iterator[Fields]:
    """Every model under every condition, then the single runs."""
    models, conditions, singles = (blocks[name] for name in _BLOCKS)
    if conditions and not models:
        raise DataError("conditions need models", file=file, field="models", remedy="add a block [[models]]")
    for model, condition in product(models, conditions or [{}]):
        names = [one["name"] for one in (model, condition) if "name" in one]
        yield model | condition | ({"name": "_".join(names)} if names else {})
    yield from singles


def _name_runs(planned: Iterator[Fields], file: Path) -> Iterator[tuple[str, Fields]]:
    seen: set[str] = set()
    for fields in planned:
        rest = dict(fields)
        name = (
            slug(str(rest.pop("name"))) if "name" in rest else name_run({k: v for k, v in rest.items() if k != "cases"})
        )
        if name in seen:
            raise DataError(f"two runs are named {name}", file=file, remedy='distinguish them with name = "…"')
        seen.add(name)
        yield name, rest
    if not seen:
        raise DataError("the plan has no runs", file=file, field="models", remedy="add a block [[models]] or [[runs]]")


def _read_run(name: str, fields: Fields, data: Path, out: Path, file: Path) -> "SweepRun":
    from medthink.runs.sweep import SweepRun

    known = {key: flag for key, flag in flags_of(run_command).items() if key not in _OF_THE_SWEEP}
    if strange := [key for key in fields if key not in known]:
        remedy = suggest(strange[0], known, "the fields are the flags of medthink run")
        raise DataError("no such field", file=file, field=strange[0], remedy=remedy)
    checked = check_fields(fields, known, file, click.Context(run_command))
    words = [word for key, value in checked.items() for word in _typed(known[key], value)]
    try:
        context = run_command.make_context(
            "run", [str(data), f"--out={out}", *words], help_option_names=list(HELP_FLAGS)
        )
        with context.scope(cleanup=False):
            flags = {key: value for key, value in context.params.items() if key not in _NOT_OF_A_RUN}
            transport = read_transport(flags)
            return SweepRun(name=name, spec=read_spec(data, flags), transport=transport)
    except (click.UsageError, UsageError) as error:
        problem = error.message if isinstance(error, click.UsageError) else error.problem
        remedy = getattr(error, "remedy", "") or "see medthink run -h"
        raise DataError(f"run {name}: {problem}", file=file, remedy=remedy) from None


_NOT_OF_A_RUN = ("data", "as_json", "dry_run", "show_prompts")


def _typed(flag: click.Parameter, value: Any) -> list[str]:
    """The flag as typed on the command line."""
    if isinstance(value, bool):
        return [flag.opts[-1] if value else flag.secondary_opts[-1]]
    return [f"{flag.opts[-1]}={one}" for one in (value if isinstance(value, list) else [value])]


def _number(value: Any, name: str, file: Path) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if value is not None and not is_number:
        raise DataError(f"{value!r} is not a number", file=file, field=name, remedy=f"write {name} = 50")
    return None if value is None else float(value)
