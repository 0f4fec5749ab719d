"""`medthink completion`: a script for the shell, and the completions it asks for."""

import os

import click
from click.shell_completion import ShellComplete, get_completion_class

from medthink.cli import COMMANDS, COMPLETE_VARIABLE
from medthink.cli.door import load_command

_SHELLS = ("bash", "zsh", "fish")


class _Root(click.Group):
    """All commands as one group, which is what click completes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported on demand."""
        if name not in COMMANDS:
            return None
        command = load_command(name)
        command.short_help = COMMANDS[name].summary
        return command


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete commands, flags and file names.

    Put it where the shell looks for completions; for zsh that is a folder of $fpath, under the name _medthink.

    \b
    Example: medthink completion fish > ~/.config/fish/completions/medthink.fish
    Example: medthink completion bash > ~/.local/share/bash-completion/completions/medthink
    """
    click.echo(_completer(shell).source())


def answer_shell() -> int:
    """Print completions in the form the shell's script asks for through its variable."""
    shell, _, task = os.environ[COMPLETE_VARIABLE].partition("_")
    if shell not in _SHELLS or task != "complete":
        return 1
    click.echo(_completer(shell).complete())
    return 0


def _completer(shell: str) -> ShellComplete:
    found = get_completion_class(shell)
    assert found is not None
    return found(_Root("medthink"), {"help_option_names": ["-h", "--help"]}, "medthink", COMPLETE_VARIABLE)
