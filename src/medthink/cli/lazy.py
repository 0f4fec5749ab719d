"""A command group whose commands are imported when they are called."""

from importlib import import_module

import click

from medthink.core.errors import UsageError
from medthink.core.suggest import suggest


class LazyGroup(click.Group):
    """A group over a table of `name → module`; each module holds a click command of the group's naming."""

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
        """The command, imported now."""
        if name not in self._modules:
            return None
        command: click.Command = import_module(self._modules[name]).command
        # Without it, the group's help would cut the first sentence off where its line ends.
        command.short_help = (command.help or "").partition("\n")[0]
        return command
