"""`medthink curate`: from raw teaching cases to a benchmark, stage by stage or as a plan."""

import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click
import msgspec
from msgspec import to_builtins

from medthink.cli.command import LazyGroup, PlanCommand
from medthink.cli.flags import (
    PATH,
    SENDING,
    ListOption,
    base_url_flag,
    condition_flag,
    count_flag,
    dry_run_flag,
    json_flag,
    model_flag,
    out_folder,
    quiet_flag,
    repeats_flag,
    seed_flag,
)
from medthink.cli.output import console, is_quiet, print_json, print_line, print_table, show_estimate
from medthink.core.errors import DataError, PartlyFailed, UsageError
from medthink.core.numbers import as_percent, count_of

if TYPE_CHECKING:
    from medthink.curate.build import Watch
    from medthink.curate.plan import StageSummary, WorkFolder
    from medthink.curate.review import OddCell
    from medthink.curate.rulings import Rulings, StageErrors
    from medthink.curate.sources.release import ReleaseChange
    from medthink.curate.stage import Stage


class _StageGroup(LazyGroup):
    """The commands of the table, and one for each stage of the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Build and review first, then the stages in their order."""

        from medthink.curate.settings import STAGES

        return [*super().list_commands(ctx), *STAGES]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A stage by its name, else a command of the table."""

        from medthink.curate.settings import STAGES

        if args[0] in STAGES:
            return args[0], self.get_command(ctx, args[0]), args[1:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, made or imported on demand."""

        from medthink.curate.settings import STAGES

        if name in STAGES:
            return stage_command(name)
        return super().get_command(ctx, name)


@click.group(
    cls=_StageGroup,
    modules={"build": "curate:curate_build", "review": "curate:curate_review"},
)
def curate() -> None:
    """Turn from raw teaching cases to a benchmark, stage by stage or as a plan.

    Every stage writes new files and a log of its decisions; none changes its input.

    Example: medthink curate build plan.toml
    """


@click.command("build", cls=PlanCommand)
@click.argument("plan", metavar="PLAN.toml", type=PATH)
@click.option(
    "--since",
    metavar="RELEASE",
    type=PATH,
    help="A published benchmark: its cases keep number, split, options and letters; what must change is listed.",
)
@quiet_flag
@json_flag
def curate_build(plan: Path, since: Path | None, as_json: bool) -> None:
    """Build a benchmark from raw cases, as PLAN.toml says.

    Each table of the plan runs the stage of its name. Run the same command again to continue: finished stages and
    answered calls are kept, calls that failed are made again, and the rulings in WORK/review.csv are applied.

    \b
    Example: medthink curate build plan.toml
    Example: medthink curate build plan.toml --since release-1/
    """
    from medthink.curate.build import build
    from medthink.curate.plan import read_plan

    read = read_plan(plan)
    if since is not None:
        read = msgspec.structs.replace(read, since=since)
    try:
        with shown_stages() as watch:
            end = build(read, watch)
    except KeyboardInterrupt:
        print_line(
            f"Stopped. {read.work} keeps every finished stage and call; run the same command again to continue.",
            stderr=True,
        )
        raise
    if as_json:
        told = {"stages": to_builtins(end.stages), "waiting": end.waiting, "errors": to_builtins(end.errors)}
        told |= {"odd": [one._asdict() for one in end.odd]}
        told |= {"changes": None if end.changes is None else [one._asdict() for one in end.changes]}
        print_json(told | {"work": str(end.work), "unfinished": end.unfinished})
    else:
        show_stages(end.stages)
        show_errors(end.errors)
        if read.since is not None and end.changes is not None:
            show_changes(end.changes, read.since, end.work)
        print_line(f"{end.waiting:,} cases wait for a person: {end.work / 'review.csv'}")
    odd = odd_cells(end.odd, read.work)
    for one in odd:
        print_line(str(one), stderr=True)
    if end.stopped_by is not None:
        raise end.stopped_by
    if end.unfinished:
        raise PartlyFailed(
            f"{end.unfinished:,} cases are undecided because calls failed",
            remedy="run the same command again to retry them",
        )
    refuse_odd(odd)


@click.command("review")
@click.argument("work", metavar="WORK", type=PATH)
@count_flag("decisions of each stage to check", type=click.IntRange(0), default=20, show_default=True)
@seed_flag
@json_flag
def curate_review(work: Path, count: int, seed: int, as_json: bool) -> None:
    """Write the review sheet of a work folder, and report the results of completed checks.

    WORK/review.csv lists every undecided case (fill in `ruling`: in or out, and `value` where one is proposed) and a
    sample of the automatic decisions (fill in `is_right`: yes or no). Completed cells stay; the next build applies
    them.

    \b
    Example: medthink curate review work/ --count 50
    """
    from medthink.curate.decision import read_decisions
    from medthink.curate.plan import WorkFolder
    from medthink.curate.review import read_rulings, write_review

    folder = WorkFolder(work)
    summaries = folder.read_summaries()
    if not summaries:
        raise UsageError(f"{work} contains no build", remedy="run medthink curate build PLAN.toml first")
    rulings = read_rulings(work)
    logs = {name: read_decisions(folder.decision_file(name)) for name, one in summaries.items() if one.counts.seen}
    sheet = write_review(work, logs, sample=count, seed=seed)
    if as_json:
        told = {"waiting": sheet.waiting, "errors": to_builtins(rulings.errors()), "sheet": str(folder.review)}
        print_json(told | {"odd": [one._asdict() for one in sheet.odd]})
    else:
        print_line(f"{sheet.waiting:,} cases wait for a person: {folder.review}")
        show_errors(rulings.errors())
    odd = odd_cells(sheet.odd, work)
    for one in odd:
        print_line(str(one), stderr=True)
    refuse_odd(odd)


def stage_command(name: str) -> click.Command:
    """The command of a stage."""

    from medthink.curate.settings import STAGES, CallSettings

    entry = STAGES[name]
    settings = [_flag(field) for field in msgspec.structs.fields(entry.settings)]
    cases: list[click.Parameter] = (
        [click.Argument(["cases"], metavar="CASES", type=PATH)] if entry.takes_cases else []
    )  # fmt: skip
    common: list[click.Parameter] = [
        click.Option(["--work"], required=True, metavar="WORK", type=PATH, help=_WORK),
        seed_flag.option("seed"),
        *([dry_run_flag.option("dry_run")] if issubclass(entry.settings, CallSettings) else []),
        quiet_flag.option("quiet"),
        json_flag.option("as_json"),
    ]

    def run_stage(work: Path, as_json: bool, cases: Path | None = None, dry_run: bool = False, **fields: Any) -> None:
        from medthink.curate.build import rehearse_stage
        from medthink.curate.plan import WorkFolder

        stage, rulings = _open(name, cases, work, fields)
        if dry_run:
            show_estimate(name, rehearse_stage(stage, WorkFolder(work), rulings), as_json=as_json)
        else:
            _carry_out(stage, WorkFolder(work), rulings, as_json=as_json)

    return click.Command(
        name,
        callback=run_stage,
        params=[*cases, *settings, *common],
        help=_help(name),
        short_help=STAGES[name].summary,
    )


_WORK = "The folder to write into: cases/, decisions/ and the ledger."


def _help(name: str) -> str:
    from medthink.curate.settings import STAGES

    entry = STAGES[name]
    about = "CASES is a file that another stage wrote, or a benchmark's .jsonl file. " if entry.takes_cases else ""
    given = "work/cases/ingest.jsonl" if entry.takes_cases else "--source cases.csv"
    text = f"{entry.summary}.\n\n{about}Run the same command again to continue."
    return f"{text}\n\n\b\nExample: medthink curate {name} {given} --work work/"


def _open(name: str, cases: Path | None, work: Path, fields: dict[str, Any]) -> "tuple[Stage[Any], Rulings]":
    """The stage with the settings that the flags give, and what people have ruled so far."""
    from medthink.curate.build import open_stage
    from medthink.curate.plan import WorkFolder
    from medthink.curate.review import read_rulings
    from medthink.curate.settings import read_stage_settings

    seed = fields.pop("seed")
    given = {key: value for key, value in fields.items() if value not in (None, ())}
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
    settings = read_stage_settings(name, plain)
    stage = open_stage(name, settings, work=WorkFolder(work), source=cases, plan_folder=Path(), seed=seed)
    return stage, read_rulings(work)


def _carry_out(stage: "Stage[Any]", folder: "WorkFolder", rulings: "Rulings", *, as_json: bool) -> None:
    from medthink.curate.build import run_stage_once
    from medthink.curate.settings import STAGES

    before = folder.read_summaries()
    with shown_stages() as watch:
        summary, stopped_by = run_stage_once(stage, folder, rulings, before.get(stage.name), watch)
    done = before | {stage.name: summary}
    folder.write_summaries({name: done[name] for name in STAGES if name in done})
    if as_json:
        print_json(to_builtins(summary))
    else:
        show_stages([summary])
    if stopped_by is not None:
        raise stopped_by
    if summary.counts.unfinished:
        raise PartlyFailed(
            f"{summary.counts.unfinished:,} cases are undecided because calls failed",
            remedy="run the same command again to retry them",
        )


# The settings that are flags of `medthink run` too.
_SHARED = {
    **SENDING,
    "base_url": base_url_flag,
    "model": model_flag,
    "repeats": repeats_flag,
    "out": out_folder.but(required=False),
    "schema": condition_flag("use_schema"),
    **{name: condition_flag(name) for name in ("effort", "temperature", "max_tokens")},
}


def _flag(field: msgspec.structs.FieldInfo) -> click.Option:
    """A setting as a flag."""
    default = None if field.default in (msgspec.NODEFAULT, "", ()) else field.default
    kind, help_ = _kind_of(field.type)
    is_list = get_origin(kind) is tuple
    if (shared := _SHARED.get(field.name)) is not None:
        shared = shared if default is None else shared.but(default=default)
        return (shared.but(cls=ListOption) if is_list else shared).option(field.name)
    names = [f"--{field.name.replace('_', '-')}"]
    names += [one.replace("licence", "license") for one in names if "licence" in one]
    if kind is bool:
        said = f"{help_}  [default: {'yes' if default else 'no'}]"
        return click.Option([f"{one}/--no-{one[2:]}" for one in names], default=default, help=said)
    kind = get_args(kind)[0] if is_list else kind
    choice = click.Choice(get_args(kind)) if get_origin(kind) is Literal else None
    return (ListOption if is_list else click.Option)(
        names, type=choice or kind, default=default, required=field.default is msgspec.NODEFAULT,
        show_default=default is not None, metavar=None if choice else _METAVARS.get(kind), help=help_,
    )  # fmt: skip


_METAVARS = {str: "TEXT", int: "N", float: "X"}


def _kind_of(annotation: Any) -> tuple[Any, str]:
    """The plain type of a setting and its description."""
    help_ = ""
    if hasattr(annotation, "__metadata__"):
        help_ = next((one.description or "" for one in annotation.__metadata__ if isinstance(one, msgspec.Meta)), "")
        annotation = annotation.__origin__
    if get_origin(annotation) in (Union, types.UnionType):
        annotation, _ = _kind_of(next(one for one in get_args(annotation) if one is not type(None)))
    return annotation, help_


@contextmanager
def shown_stages() -> "Iterator[Watch]":
    """A line for each stage that counts its cases while it works."""
    from rich.progress import BarColumn, Progress, TextColumn

    watched = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} cases"),
        console=watched, transient=True, disable=is_quiet() or not watched.is_terminal,
    )  # fmt: skip
    with bar:

        def watch(stage: str):  # type: ignore[no-untyped-def]
            task = bar.add_task(stage, total=None)
            return lambda: bar.advance(task)

        yield watch


def show_stages(stages: "Sequence[StageSummary]") -> None:
    """The counts of every stage, the reasons why cases were left out, and the limits of the checks."""
    rows = [
        (one.stage, one.counts.seen, one.counts.kept, one.counts.changed, one.counts.out, one.counts.undecided)
        for one in stages
    ]
    columns = ("stage", "cases", "unchanged", "changed", "out", "undecided")
    console().print(print_table("", columns, rows, right=range(1, 6)))
    for one in stages:
        for verdict in ("out", "undecided"):
            if reasons := one.counts.reasons.get(verdict):
                words = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
                print_line(f"{one.stage}, {verdict}: {words}")
        for name, value in one.report.items():
            print_line(f"{one.stage}: {name}: {value}")
    for one in stages:
        for missing in one.not_covered:
            print_line(f"Not checked by {one.stage}: {missing}")


def show_errors(errors: "Sequence[StageErrors]") -> None:
    """Print the results of people's checks of automatic decisions."""
    for one in errors:
        print_line(
            f"{one.stage}: {one.wrong} of {one.checked} checked decisions were wrong;"
            f" the error rate is at most {as_percent(one.bound)} (95 %)"
        )


_CHANGES_SHOWN = 10


def show_changes(changes: "Sequence[ReleaseChange]", since: Path, work: Path) -> None:
    """Print what is not as in the release."""
    cases = len({one.case for one in changes})
    print_line(f"Since {since}: {count_of(cases, 'published case')} changed; every change: {work / 'changes.csv'}")
    for one in changes[:_CHANGES_SHOWN]:
        print_line(f"case {one.case}: {one.changed}: {one.why}")


def odd_cells(cells: "Sequence[OddCell]", work: Path) -> list[DataError]:
    """The errors of review-sheet cells that cannot be used."""
    sheet = work / "review.csv"
    return [
        DataError(f"case {one.case}: {one.problem}", file=sheet, row=one.row, field=one.column, remedy=one.remedy)
        for one in cells
    ]


def refuse_odd(odd: "Sequence[DataError]") -> None:
    """DataError if there is any; each was printed already."""
    if odd:
        count = "1 answer" if len(odd) == 1 else f"{len(odd):,} answers"
        raise DataError(f"{count} on the review sheet cannot be used", file=odd[0].file, remedy="correct these cells")
