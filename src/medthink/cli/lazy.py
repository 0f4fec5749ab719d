"""Commands with subcommands, imported when they are called."""

from importlib import import_module
from typing import Any

import click

from medthink.core.errors import UsageError
from medthink.core.suggest import suggest


class LazyGroup(click.Group):
    """A group over a table of `name → module`; each module holds a click command under the name the group expects."""

    def __init__(self, *args: object, modules: dict[str, str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the table's order."""
        return list(self._modules)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, or a usage error with the closest name."""
        name = args[0]
        if name not in self._modules and not name.startswith("-"):
            remedy = suggest(name, self._modules, f"{ctx.command_path} --help lists the commands")
            raise UsageError(f"no such command: {ctx.command_path} {name}", remedy=remedy)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported on demand."""
        return _load(self._modules, name)


class ParentCommand(click.Command):
    """A command with its own arguments that also has subcommands: its first word may name one."""

    def __init__(self, *args: Any, modules: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of the subcommands, in the table's order."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """One of the subcommands, imported on demand."""
        return _load(self._modules, name)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command named: a subcommand, or this one."""
        other = _load(self._modules, args[0]) if args else None
        if other is not None:
            return other.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command of the context."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags, then the subcommands."""
        super().format_options(ctx, formatter)
        loaded = {name: _load(self._modules, name) for name in self._modules}
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.short_help or "") for name, one in loaded.items() if one])


def _load(modules: dict[str, str], name: str) -> click.Command | None:
    if name not in modules:
        return None
    command: click.Command = import_module(modules[name]).command
    # Without it, the parent's help would cut the first sentence at its line end.
    command.short_help = (command.help or "").partition("\n")[0]
    return command
