"""`medthink run`: a model and a task under a condition over a benchmark's cases, with every call stored on disk."""

import gc
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.command import SectionedCommand
from medthink.cli.flags import (
    ListOption,
    cluster_flag,
    condition_flags,
    dry_run_flag,
    json_flag,
    model_flag,
    out_run,
    quiet_flag,
    read_condition,
    read_terms,
    read_transport,
    say_jobs,
    sending_flags,
    split_flag,
    verbose_flag,
)
from medthink.cli.output import print_json, print_line
from medthink.cli.results.compare import open_rule, show_stopping
from medthink.core.clock import utc_in
from medthink.core.errors import DataError, OutsideError, PartlyFailed, UsageError, did_you_mean, suggest
from medthink.core.jsonio import read_toml
from medthink.core.numbers import count_of
from medthink.workflow.condition import FIELDS
from medthink.workflow.tasks import task_names

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.manifest import RunSpec
    from medthink.runs.run import Run
    from medthink.runs.session import RunSession
    from medthink.scoring.sequential import SequentialStatement, StopWhenKnown
    from medthink.stats.confidence_sequences import WatchClaim

# Flags of one call of the command, not of the run; the output path is not part of the run either.
_NOT_PLANNED = frozenset({"json", "dry_run", "show_prompts", "help", "shards", "cluster"})
Fields = dict[str, Any]


def plan_callback(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """A callback for DATA: if it names a plan, the plan's fields become the defaults of the flags."""
    if value is None or value.suffix != ".toml":
        return value
    known = flags_of(ctx.command)
    fields = {name.replace("-", "_"): field for name, field in read_toml(value).items()}
    data = fields.pop(param.name or "", None)
    ctx.default_map = {known[name].name: field for name, field in check_fields(fields, known, value, ctx).items()}
    if not isinstance(data, str):
        raise DataError("the benchmark is missing", file=value, field="data", remedy='write data = "FOLDER"')
    return value.parent / data


def flags_of(command: click.Command) -> dict[str, click.Parameter]:
    """The flags a plan may set, by field name."""
    options = (param for param in command.params if isinstance(param, click.Option))
    named = {option.opts[-1].lstrip("-").replace("-", "_"): option for option in options}
    return {name: option for name, option in named.items() if name not in _NOT_PLANNED}


def check_fields(fields: Fields, known: dict[str, click.Parameter], file: Path, ctx: click.Context) -> Fields:
    """The fields as flag values, or DataError naming the one that is invalid."""
    return {name: _check(name, value, known, file, ctx) for name, value in fields.items()}


def _check(name: str, value: Any, known: dict[str, click.Parameter], file: Path, ctx: click.Context) -> Any:
    if name not in known:
        remedy = suggest(name, known, "the fields are the flags of medthink run")
        raise DataError("no such field", file=file, field=name, remedy=remedy)
    flag = known[name]
    plain = _plain_value(value, flag, file)
    is_switch = isinstance(flag, click.Option) and flag.is_flag
    try:
        if is_switch != isinstance(value, bool):
            raise click.BadParameter(f"{value!r} is not {'true or false' if is_switch else 'a value of this flag'}.")
        flag.type_cast_value(ctx, plain)
    except click.BadParameter as error:
        raise DataError(error.message, file=file, field=name, remedy="see medthink run -h") from None
    return plain


def _plain_value(value: Any, flag: click.Parameter, file: Path) -> Any:
    """The value as it would be typed: lists with commas or one by one, paths from the file's folder."""
    if flag.multiple:
        return [str(one) for one in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(flag.type, click.Path) and isinstance(value, str):
        return str(file.parent / value)
    return value


def write_plan(ctx: click.Context, folder: Path) -> str:
    """The command that the context holds, with every flag that was given or has a default, as a plan in `folder`."""
    lines = [f"data = {_write_value(_from(folder, ctx.params['data']))}"]
    for name, flag in flags_of(ctx.command).items():
        value = ctx.params.get(flag.name or "")
        if value is None or value == ():
            continue
        lines.append(f"{name} = {_write_value(_from(folder, value) if isinstance(value, Path) else value)}")
    return "\n".join([*lines, ""])


def _from(folder: Path, path: Path) -> str:
    return os.path.relpath(path, folder)


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write_value, value))}]"
    # TOML strings are JSON strings, except for DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


# A model that ends within so long may not outlast a run and its repetition.
_SOON_S = 60 * 86_400.0


@click.command(
    cls=SectionedCommand,
    sections={
        "--model": "What to run",
        "--split": "Which cases",
        "--image-share": "Condition (what the model is shown, and how it is asked)",
        "--base-url": "Server, limits and money",
        "--dry-run": "Inspect without sending anything",
        "--json": "Output",
    },
)
@click.argument(
    "data",
    metavar="DATA|PLAN.toml",
    required=False,
    is_eager=True,
    callback=plan_callback,
    type=click.Path(path_type=Path),
)
@model_flag
@click.option(
    "-t", "--task", type=click.Choice(task_names()), default="answer", show_default=True,
    help="answer: the diagnosis alone; twi (think with images): findings, summary, differential; discussion: a "
    "teaching discussion.",
)  # fmt: skip
@out_run
@split_flag
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Only the first N cases.")
@click.option("--cases", cls=ListOption, type=click.IntRange(0), metavar="ID,…", help="Only these cases.")
@click.option("--shard", metavar="I/N", help="Only part I of N; medthink merge combines the parts.")
@click.option("--shards", type=click.IntRange(1), metavar="N", help="With --cluster: split the run into N parts.")
@cluster_flag("Run the parts")
@condition_flags
@sending_flags
@click.option(
    "--rehash/--no-rehash", default=False, help="Hash all images again, even if their files look unchanged.",
)  # fmt: skip
@click.option(
    "--stop-when", metavar="POINTS|RUN",
    help="Stop as soon as the accuracy is known to ±POINTS, or this run is shown to be better or worse than RUN.",
)  # fmt: skip
@click.option(
    "--population/--no-population", default=False,
    help="With --stop-when: known for the population that the cases were drawn from, not for these cases only.",
)  # fmt: skip
@dry_run_flag
@click.option("--show-prompts", is_flag=True, help="Print what would be sent for the first case; send nothing.")
@quiet_flag
@verbose_flag
@json_flag
def run(data: Path | None, as_json: bool, dry_run: bool, show_prompts: bool, **flags: Any) -> None:
    """Run a model over the cases of DATA, storing every call on disk.

    Without --out, the run's folder is runs/MODEL_TASK_CONDITION. Run the same command again to continue after an
    interruption: no answered call is sent again. A run can also be described in a TOML file whose fields are
    the flags; flags on the command line override it. Every run stores its own as plan.toml.

    \b
    Example: medthink run bench/ --model baseline/retrieval --task twi
    Example: medthink run bench/ --model server/qwen --base-url http://localhost:8000/v1 --out runs/qwen
    Example: medthink run plan.toml --max-usd 20
    """
    refuse_missing(data, flags["model"])
    from medthink.cli.run import display
    from medthink.cli.run.shards import carry_out_shards, read_shards

    goal = flags.pop("stop_when")
    claim: WatchClaim = "such" if flags.pop("population") else "these"
    if goal is not None and flags["batch"]:
        raise UsageError("a batch cannot be stopped halfway", remedy="leave out --batch or --stop-when")
    shards = read_shards(flags, goal=goal)
    transport = read_transport(flags)
    spec = read_spec(data, flags)
    _question_model(spec)
    if show_prompts:
        display.show_prompts(spec)
    elif dry_run:
        display.show_estimate(spec, transport, as_json=as_json)
    elif shards is not None:
        _refuse_failures(carry_out_shards(spec, transport, shards, as_json=as_json))
    else:
        _carry_out(spec, transport, None if goal is None else open_rule(spec, goal, claim), as_json=as_json)


def _question_model(spec: "RunSpec") -> None:
    """Suggest a similar name if a provider's model is not in the price list; say when one in it is switched off."""
    from medthink.models.prices import load_prices

    prices = load_prices(spec.prices)
    known_price = prices.find(spec.model)
    if known_price is not None and known_price.ends and known_price.ends <= utc_in(_SOON_S)[:10]:
        print_line(f"Caution: {spec.model} is switched off on {known_price.ends}, as announced", stderr=True)
    if spec.price is not None:
        return
    provider = spec.model.partition("/")[0]
    known = [name for name in prices.models if name.startswith(f"{provider}/")]
    if known and known_price is None and (meant := did_you_mean(spec.model, known, cutoff=0.85)):
        print_line(f"{spec.model} is not in the list of prices: {meant}", stderr=True)


def _carry_out(spec: "RunSpec", transport: "Transport", rule: "StopWhenKnown | None", *, as_json: bool) -> None:
    from medthink.cli.output import follow
    from medthink.runs.batches.queue import FOLDER
    from medthink.runs.session import run_session

    # What is imported by now lives until the end.
    gc.freeze()
    print_line(f"{spec.model} · {spec.task} · {spec.condition.label()} → {spec.out}", stderr=True)
    with follow(spec.out, as_json=as_json) as progress:
        session = run_session(spec, transport=transport, listener=progress, rule=rule)
    for warning in session.warnings:
        print_line(f"Caution: {warning}", stderr=True)
    _show_session(session, rule, as_json=as_json)
    say_jobs(session.jobs, session.run.path / FOLDER)
    if session.stopped_by is not None:
        raise session.stopped_by
    _refuse_failures(session.run)


def _refuse_failures(run: "Run") -> None:
    """Exit with 3 if every case failed, and with 4 if some did."""
    made = run.manifest.progress
    failed = made.states.get("failed", 0) if made is not None else 0
    if not made or not failed:
        return
    if set(made.states) == {"failed"}:
        raise OutsideError(
            "no case was answered",
            remedy="see the reasons above or in predictions.jsonl, then run the same command again",
        )
    raise PartlyFailed(
        f"{failed:,} of {made.cases:,} predictions failed",
        remedy=f"medthink show {run.path} --failed shows why; the same command retries them",
    )


def _show_session(session: "RunSession", rule: "StopWhenKnown | None", *, as_json: bool) -> None:
    from medthink.cli.run.display import show_progress

    manifest = session.run.manifest
    if as_json:
        from msgspec import to_builtins

        made = {"run": str(session.run.path), "calls_made_now": session.calls_made}
        known = {} if rule is None else {"known": to_builtins(_known(session, rule))}
        print_json(to_builtins(manifest) | made | known)
        return
    show_progress(session.run.path, manifest)
    calls = count_of(session.calls_made, "call")
    print_line(f"{calls} made in this session; predictions: {session.run.path / 'predictions.jsonl'}")
    if rule is not None:
        show_stopping([_known(session, rule)])


def _known(session: "RunSession", rule: "StopWhenKnown") -> "SequentialStatement":
    progress = session.run.manifest.progress
    done = sum(progress.states.values()) if progress else 0
    cost = None if progress is None or progress.cost_usd is None or not done else progress.cost_usd / done
    return rule.statement(
        session.run.path.name, None if cost is None else cost * session.run.manifest.condition.samples
    )


RUNS = Path("runs")
_UNFIT = re.compile(r"[^A-Za-z0-9.]+")
_LONGEST_WORD = 60
# Lists that belong to one run; the first is where it is asked, which is no part of its name.
LISTS = ("base_url", "cases")
_SELECTING = ("split", "limit", "cases", "shard")


def name_run(fields: Fields) -> str:
    """`MODEL_TASK_CONDITION`: the model, the task, and every other field that is given, except server addresses."""
    said = {key: value for key, value in fields.items() if key not in ("model", "task", "base_url")}
    words = [fields.get("model", ""), fields.get("task", "")]
    words += [f"{key}-{_spell(value)}"[:_LONGEST_WORD] for key, value in said.items()]
    return "_".join(slug(str(word)) for word in words if word)


def _spell(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def slug(text: str) -> str:
    """The text as the name of a folder."""
    return _UNFIT.sub("-", text).strip("-.") or "run"


def _given(context: click.Context) -> Fields:
    """The flags of the selection and the condition that were given, by a plan or on the command line."""
    known = flags_of(context.command)
    wanted = [*_SELECTING, *(field.parameter for field in FIELDS)]
    sources = {name: context.get_parameter_source(known[name].name or "") for name in wanted}
    return {
        name: context.params[known[name].name or ""]
        for name, source in sources.items()
        if source is not click.core.ParameterSource.DEFAULT
    }


def refuse_missing(data: Path | None, model: str | None) -> None:
    """Raise UsageError, before anything slow is loaded, unless there are a benchmark and a model."""
    if missing := [name for name, value in {"DATA": data, "--model": model}.items() if value is None]:
        raise UsageError(f"missing: {', '.join(missing)}", remedy="medthink run --help shows an example")


def read_spec(data: Path | None, flags: dict[str, Any]) -> "RunSpec":
    """The run that the flags describe, in a folder named after it if none is given; takes what it uses from them."""
    from medthink.runs.manifest import RunSpec
    from medthink.runs.selection import Selection, parse_shard

    model, out = flags.pop("model"), flags.pop("out")
    refuse_missing(data, model)
    assert data is not None
    context = click.get_current_context()
    out = out or RUNS / name_run({"model": model, "task": flags["task"], **_given(context)})
    task, shard, cases = flags.pop("task"), flags.pop("shard"), flags.pop("cases")
    selection = Selection(
        split=flags.pop("split"),
        limit=flags.pop("limit"),
        cases=tuple(sorted(set(cases))) or None,
        shard=None if shard is None else parse_shard(shard),
    )
    plan = write_plan(context, out)
    rehash, terms = flags.pop("rehash"), read_terms(flags)
    condition = read_condition(task, flags)
    return RunSpec(
        benchmark=data, model=model, out=out, task=task, condition=condition, selection=selection, plan=plan,
        rehash=rehash, **terms,
    )  # fmt: skip
