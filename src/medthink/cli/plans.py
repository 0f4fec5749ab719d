"""A command as a file: the flags of `medthink run` as the fields of a TOML file, and the other way round.

A field is a flag without its dashes (`image_share`, or `image-share`); `data` is the argument. Paths are relative to
the file's folder. Unknown fields and wrong values are errors that name the file and the field.
"""

import json
import os
from pathlib import Path
from typing import Any

import click

from medthink.core.errors import DataError
from medthink.core.suggest import suggest
from medthink.core.tomlio import read_toml

# What a person asks of one call of the command, not of the run; where it is made is no part of it either.
_NOT_PLANNED = frozenset({"json", "dry_run", "show_prompts", "status", "help", "shards", "on"})
Fields = dict[str, Any]


def take_plan(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """A callback for DATA: if it names a plan, the plan's fields become the defaults of the flags."""
    if value is None or value.suffix != ".toml":
        return value
    known = flags_of(ctx.command)
    fields = {name.replace("-", "_"): field for name, field in read_toml(value).items()}
    data = fields.pop(param.name or "", None)
    ctx.default_map = {known[name].name: field for name, field in check_fields(fields, known, value, ctx).items()}
    if not isinstance(data, str):
        raise DataError("no benchmark is named", file=value, field="data", remedy='write data = "FOLDER"')
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
        raise DataError(error.message, file=file, field=name, remedy="medthink run -h says what it takes") from None
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
