"""In every test: an error of a command names no flag that neither it nor a command named in the message has."""

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest

from medthink.cli import COMMANDS
from medthink.core.errors import MedThinkError

_FLAG = re.compile(r"(?<![\w/.-])--[a-z][a-z-]*[a-z](?![\w-])")
_NAMED = re.compile(r"\bmedthink ([a-z]+)(?: ([a-z]+))?")
# Flags of other programs that messages name, and words of tests.
FOREIGN = {"--head", "--local-dir"}


@pytest.fixture(autouse=True, scope="session")
def remedies_name_flags_that_are_there() -> Iterator[None]:
    """Fail the command whose error names a flag that cannot be given."""
    invoke = click.Command.invoke

    def checked(command: click.Command, ctx: click.Context) -> Any:
        try:
            return invoke(command, ctx)
        except MedThinkError as error:
            # Where a plan says everything, the message is put into the plan's words on its way out.
            has_plan = any(one.metavar == "PLAN.toml" for one in command.params if isinstance(one, click.Argument))
            dead = set() if has_plan else unknown_flags(str(error), command)
            assert not dead, f"{ctx.command_path} has no {', '.join(sorted(dead))}: {error}"
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click.Command, "invoke", checked)
        yield


def unknown_flags(message: str, command: click.Command) -> set[str]:
    """The flags in a message that neither the command nor one that the message names has."""
    named = [found for first, second in _NAMED.findall(message) for found in _commands(first, second)]
    known = {flag for one in (command, *named) for param in one.params for flag in (*param.opts, *param.secondary_opts)}
    return set(_FLAG.findall(message)) - known - FOREIGN - {"--help"}


def _commands(first: str, second: str) -> list[click.Command]:
    from medthink.cli.command import load_command

    if first not in COMMANDS:
        return []
    found = load_command(first)
    below = found.get_command(click.Context(found), second) if isinstance(found, click.Group) else None
    return [found, below] if below is not None else [found]
