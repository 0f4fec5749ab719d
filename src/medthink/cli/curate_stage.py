"""`medthink curate STAGE`: a command made from a stage's settings, one flag for each."""

import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click
import msgspec
from msgspec import to_builtins

from medthink.cli.show import print_json
from medthink.core.errors import PartlyFailed
from medthink.curate.registry import STAGES, read_settings, stage_type


def stage_command(name: str) -> click.Command:
    """The command of a stage."""
    kind = stage_type(name)
    settings = [_flag(field) for field in msgspec.structs.fields(kind.settings_type)]
    cases: list[click.Parameter] = (
        [click.Argument(["cases"], metavar="CASES", type=click.Path(path_type=Path))] if kind.takes_cases else []
    )
    common: list[click.Parameter] = [
        click.Option(["--work"], required=True, metavar="WORK", type=click.Path(path_type=Path), help=_WORK),
        click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed for everything random."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
    ]

    def carry_out(work: Path, seed: int, as_json: bool, cases: Path | None = None, **fields: Any) -> None:
        _carry_out(name, cases, work=work, seed=seed, as_json=as_json, fields=fields)

    return click.Command(
        name, callback=carry_out, params=[*cases, *settings, *common], help=_help(name), short_help=STAGES[name].summary
    )


_WORK = "The folder to write into: cases/, decisions/ and the ledger."


def _help(name: str) -> str:
    kind = stage_type(name)
    about = "CASES is a file that another stage wrote, or a benchmark's .jsonl file. " if kind.takes_cases else ""
    given = "work/cases/ingest.jsonl " if kind.takes_cases else ""
    text = f"{STAGES[name].summary}.\n\n{about}Run the same command again to continue."
    return f"{text}\n\n\b\nExample: medthink curate {name} {given}{kind.example}--work work/"


def _carry_out(name: str, cases: Path | None, *, work: Path, seed: int, as_json: bool, fields: dict[str, Any]) -> None:
    from medthink.cli.curate_views import show_stages, shown_stages
    from medthink.curate.build import carry_out, open_stage
    from medthink.curate.review import Rulings
    from medthink.curate.work import WorkFolder

    settings = read_settings(name, {key: value for key, value in fields.items() if value not in (None, ())})
    folder = WorkFolder(work)
    stage = open_stage(name, settings, work=folder, source=cases, plan_folder=Path(), seed=seed)
    before = folder.read_summaries()
    with shown_stages() as watch:
        summary, stopped_by = carry_out(stage, folder, Rulings.read(folder.review), before.get(name), watch)
    done = before | {name: summary}
    folder.write_summaries({stage: done[stage] for stage in STAGES if stage in done})
    if as_json:
        print_json(to_builtins(summary))
    else:
        show_stages([summary])
    if stopped_by is not None:
        raise stopped_by
    if summary.counts.unfinished:
        raise PartlyFailed(
            f"{summary.counts.unfinished:,} cases are undecided because calls failed",
            remedy="run the same command again to repeat them",
        )


def _flag(field: msgspec.structs.FieldInfo) -> click.Option:
    """A setting as a flag."""
    kind, help_ = _kind_of(field.type)
    flag = f"--{field.name.replace('_', '-')}"
    default = None if field.default in (msgspec.NODEFAULT, "", ()) else field.default
    if kind is bool:
        return click.Option(
            [flag + (f"/--no-{flag[2:]}" if default else "")], is_flag=True, default=default, help=help_
        )
    is_list = get_origin(kind) is tuple
    if is_list:
        kind = get_args(kind)[0]
    choice = click.Choice(get_args(kind)) if get_origin(kind) is Literal else None
    shown = default is not None
    return click.Option(
        [flag], type=choice or kind, default=default, required=field.default is msgspec.NODEFAULT, multiple=is_list,
        show_default=shown, metavar=None if choice else {str: "TEXT", int: "N", float: "X"}.get(kind), help=help_,
    )  # fmt: skip


def _kind_of(annotation: Any) -> tuple[Any, str]:
    """The plain type of a setting and its description."""
    help_ = ""
    if hasattr(annotation, "__metadata__"):
        help_ = next((one.description or "" for one in annotation.__metadata__ if isinstance(one, msgspec.Meta)), "")
        annotation = annotation.__origin__
    if get_origin(annotation) in (Union, types.UnionType):
        annotation, _ = _kind_of(next(one for one in get_args(annotation) if one is not type(None)))
    return annotation, help_
