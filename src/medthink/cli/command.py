"""Commands with subcommands, imported when they are called."""

import gc
import os
import re
import sys
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from medthink.cli import COMMANDS
from medthink.cli.shell.env_file import load_env_file
from medthink.core.errors import MedThinkError, UsageError, suggest


class LazyGroup(click.Group):
    """A group over a table of `name → module:command`, modules below `medthink.cli`; imported when called.

    With a `default`, arguments that do not begin with a subcommand's name are for that subcommand; with `is_bare`, no
    arguments too.
    """

    def __init__(
        self,
        *args: object,
        modules: dict[str, str],
        default: str | None = None,
        is_bare: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._modules = modules
        self.default = default
        self._is_bare = is_bare

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the table's order."""
        return list(self._modules)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default subcommand's name before arguments that begin with no subcommand."""
        is_for_default = args[0] not in (*self._modules, *ctx.help_option_names) if args else self._is_bare
        if self.default and is_for_default:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named by the first argument, or a usage error with the closest name."""
        name = args[0]
        if name in self._modules and name != self.default and self._takes_files(ctx) and Path(name).exists():
            remedy = f"write ./{name} for the file; or run the command in another folder"
            raise UsageError(f"{name} is a subcommand, and also a file here", remedy=remedy)
        if name not in self._modules and not name.startswith("-"):
            remedy = suggest(name, self._modules, f"{ctx.command_path} --help lists the commands")
            raise UsageError(f"no such command: {ctx.command_path} {name}", remedy=remedy)
        return super().resolve_command(ctx, args)

    def _takes_files(self, ctx: click.Context) -> bool:
        """Whether a first argument that is no subcommand may be a file."""
        default = self.get_command(ctx, self.default) if self.default else None
        arguments = [] if default is None else [one for one in default.params if isinstance(one, click.Argument)]
        return any(isinstance(one.type, click.Path) for one in arguments)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported on demand."""
        return _load(self._modules, name)


def _load(modules: dict[str, str], name: str) -> click.Command | None:
    if name not in modules:
        return None
    command = _import_command(modules[name])
    # Without it, the parent's help would cut the first sentence at its line end.
    command.short_help = (command.help or "").partition("\n")[0]
    return command


class SectionedCommand(click.Command):
    """A command whose help has titled sections, each starting at a given flag."""

    def __init__(self, *args: Any, sections: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags section by section."""
        title = "Options"
        rows: list[tuple[str, tuple[str, str]]] = []
        for param in self.get_params(ctx):
            title = next((self._sections[name] for name in param.opts if name in self._sections), title)
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                rows.append((title, record))
        for heading, listed in groupby(rows, key=lambda row: row[0]):
            with formatter.section(heading):
                formatter.write_dl([record for _, record in listed])


_FLAG = re.compile(r"(?<![\w-])--(no-)?([a-z][a-z-]*[a-z])(?: (\d[\d./]*))?(?![\w-])")


class PlanCommand(click.Command):
    """A command that is told by a plan what other commands are told by flags, and names its fields in their place."""

    def invoke(self, ctx: click.Context) -> Any:
        """Carry it out; what a message says of a flag that it does not have is said of the plan's field."""
        try:
            return super().invoke(ctx)
        except MedThinkError as error:
            error.remedy = self.by_field(error.remedy)
            raise

    def by_field(self, text: str) -> str:
        """The text with fields of the plan in place of flags that the command does not have."""
        own = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}

        def say(found: re.Match[str]) -> str:
            flag, _, value = found[0].partition(" ")
            if flag in own:
                return found[0]
            name = found[2].replace("-", "_")
            given = "false" if found[1] else f'"{value}"' if value else ""
            return f"{name} = {given} in the plan" if given else f"{name} in the plan"

        # What is said of another command stays.
        return text if "medthink " in text else _FLAG.sub(say, text)


HELP_FLAGS = ("-h", "--help")


def load_command(name: str) -> click.Command:
    """The top-level command of this name."""
    return _import_command(COMMANDS[name].target)


def _import_command(target: str) -> click.Command:
    module, _, name = target.partition(":")
    command: click.Command = getattr(import_module(f"medthink.cli.{module}"), name)
    return command


_GARBAGE_THRESHOLD = 20_000


def run_command(words: list[str]) -> int:
    """Run the named command; every exit has one clear message and a documented code."""
    name, *rest = words
    if name not in COMMANDS:
        remedy = suggest(name, COMMANDS, "medthink --help lists the commands")
        return _complain(f"no such command: {name}\n  → {remedy}", 2)
    # Our matrices are small: one thread is faster than several that wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported modules live until the end; collecting garbage among them took a tenth of the time.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    command = load_command(name)
    rest = [_expand_home(word) for word in rest]
    try:
        load_env_file()
        code = command.main(
            rest, prog_name=f"medthink {name}", standalone_mode=False, help_option_names=list(HELP_FLAGS)
        )
    except click.ClickException as error:
        error.show()
        return 2
    except MedThinkError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", 130)
    except SystemExit as end:
        # Nothing of ours leaves this way: a plug-in, or a library that it uses.
        said = "" if end.code is None else f": {end.code}"
        return _complain(f"a plug-in or a library ended the program{said}\n  → do what it asks, or leave it out", 3)
    # click returns the command's exit code; a command that simply ends returns 0.
    return code if isinstance(code, int) else 0


def _expand_home(word: str) -> str:
    """`--out=~/x` with the home folder in it: a shell expands `~` only where a word begins."""
    flag = re.match(r"--[\w-]+=(?=~)|-[A-Za-z](?=~)", word)
    return flag[0] + os.path.expanduser(word[flag.end() :]) if flag else word  # noqa: PTH111


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"medthink: {message}\n")
    return code
