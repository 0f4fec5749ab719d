"""A sweep as a file: models × conditions × tasks as flags of `medthink run`; a list means one run for each value.

    data = "bench"
    out = "sweeps/shares"
    max_usd = 50

    [[models]]
    model = ["openai/gpt-5.2", "openai/gpt-5-mini"]

    [[models]]
    model = "server/qwen2.5-vl-7b"
    base_url = "http://localhost:8000/v1"

    [[conditions]]
    task = "twi"
    image_share = ["0%", "50%", "100%"]
    effort = ["low", "high"]

Every model is run under every condition. `[[runs]]` adds single runs, and a flag at the top applies to all. A run is
named after the values in its blocks, or by their field `name`.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.door import HELP_FLAGS
from medthink.cli.plans import Fields, check_fields, flags_of
from medthink.cli.run import read_spec, read_transport, run
from medthink.core.errors import DataError, UsageError
from medthink.core.suggest import suggest
from medthink.core.tomlio import read_toml

if TYPE_CHECKING:
    from medthink.runs.sweep import SweepSpec, SweptRun

_BLOCKS = ("models", "conditions", "runs")
# Flags of the sweep as a whole, not of its runs.
_OF_THE_SWEEP = ("data", "out", "max_usd", "max_calls")
# Lists that belong to one run.
_LISTS = ("base_url", "cases")
_UNFIT = re.compile(r"[^A-Za-z0-9.]+")


def read_sweep_plan(file: Path) -> "SweepSpec":
    """The sweep that a file plans, or DataError naming the field that is wrong."""
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
    choices = [value if isinstance(value, list) and name not in _LISTS else [value] for name, value in block.items()]
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
        name = _slug(str(rest.pop("name"))) if "name" in rest else _name(rest)
        if name in seen:
            raise DataError(f"two runs are named {name}", file=file, remedy='distinguish them with name = "…"')
        seen.add(name)
        yield name, rest
    if not seen:
        raise DataError("no run is planned", file=file, field="models", remedy="add a block [[models]] or [[runs]]")


def _name(fields: Fields) -> str:
    """Named after the model and the other values of the blocks, except server addresses."""
    said = {key: value for key, value in fields.items() if key not in ("model", "task", *_LISTS)}
    words = [fields.get("model", ""), fields.get("task", ""), *(f"{key}-{value}" for key, value in said.items())]
    return "_".join(_slug(str(word)) for word in words if word)


def _slug(text: str) -> str:
    return _UNFIT.sub("-", text).strip("-.") or "run"


def _read_run(name: str, fields: Fields, data: Path, out: Path, file: Path) -> "SweptRun":
    from medthink.runs.sweep import SweptRun

    known = {key: flag for key, flag in flags_of(run).items() if key not in _OF_THE_SWEEP}
    if strange := [key for key in fields if key not in known]:
        remedy = suggest(strange[0], known, "the fields are the flags of medthink run")
        raise DataError("no such field", file=file, field=strange[0], remedy=remedy)
    checked = check_fields(fields, known, file, click.Context(run))
    words = [word for key, value in checked.items() for word in _typed(f"--{key.replace('_', '-')}", value)]
    try:
        context = run.make_context("run", [str(data), f"--out={out}", *words], help_option_names=list(HELP_FLAGS))
        with context.scope(cleanup=False):
            flags = {key: value for key, value in context.params.items() if key not in _NOT_OF_A_RUN}
            transport = read_transport(flags)
            return SweptRun(name=name, spec=read_spec(data, flags, needs_out=True), transport=transport)
    except (click.UsageError, UsageError) as error:
        problem = error.message if isinstance(error, click.UsageError) else error.problem
        remedy = getattr(error, "remedy", "") or "medthink run -h says what it takes"
        raise DataError(f"run {name}: {problem}", file=file, remedy=remedy) from None


_NOT_OF_A_RUN = ("data", "status", "as_json", "dry_run", "show_prompts")


def _typed(flag: str, value: Any) -> list[str]:
    """The flag as it would be typed."""
    if isinstance(value, bool):
        return [flag] if value else []
    return [f"{flag}={one}" for one in (value if isinstance(value, list) else [value])]


def _number(value: Any, name: str, file: Path) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if value is not None and not is_number:
        raise DataError(f"{value!r} is not a number", file=file, field=name, remedy=f"write {name} = 50")
    return None if value is None else float(value)
