"""Completion in the shell: commands and flags by click, and the names of runs and models."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from medthink.cli import COMMANDS, COMPLETE_VARIABLE
from medthink.cli.command import HELP_FLAGS, load_command

_SHELLS = ("bash", "zsh", "fish")
_SIGNS = ("run.json", "sweep.json")


class _Root(click.Group):
    """All commands as one group, for click's completion."""

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
    """Print a script that completes commands, flags, folders of runs, models and files in SHELL.

    Put it where the shell looks for completions; for zsh that is a folder of $fpath, under the name _medthink.

    \b
    Example: medthink completion fish > ~/.config/fish/completions/medthink.fish
    Example: medthink completion bash > ~/.local/share/bash-completion/completions/medthink
    """
    click.echo(_completer(shell).source())


def answer_shell() -> int:
    """Print completions in the format that the shell's script requests through its variable."""
    shell, _, task = os.environ[COMPLETE_VARIABLE].partition("_")
    if shell not in _SHELLS or task != "complete":
        return 1
    click.echo(_completer(shell).complete())
    return 0


def _completer(shell: str) -> ShellComplete:
    found = get_completion_class(shell)
    assert found is not None
    return found(_Root("medthink"), {"help_option_names": list(HELP_FLAGS)}, "medthink", COMPLETE_VARIABLE)


def complete_runs(start: str) -> list[CompletionItem]:
    """The folders of runs and sweeps that begin like this, and those in a folder that does; else any file."""
    with suppress(OSError):
        if found := [CompletionItem(name) for name in _folders_of_runs(start)]:
            return found
    return [CompletionItem(start, type="file")]


def _folders_of_runs(start: str) -> Iterator[str]:
    head = start[: start.rfind("/") + 1]
    for folder in _folders(Path(head or ".")):
        if not folder.name.startswith(start[len(head) :]):
            continue
        if _is_run(folder):
            yield f"{head}{folder.name}"
        else:
            yield from (f"{head}{folder.name}/{inner.name}" for inner in _folders(folder) if _is_run(inner))


def _folders(place: Path) -> list[Path]:
    return sorted(one for one in place.iterdir() if one.is_dir() and not one.name.startswith("."))


def _is_run(folder: Path) -> bool:
    return any((folder / sign).is_file() for sign in _SIGNS)


def complete_models(start: str) -> list[CompletionItem]:
    """The models of the price lists, the baselines, and runs to replay."""
    from medthink.baselines import NAMES
    from medthink.models.prices import load_prices

    if start.startswith("replay/"):
        return [CompletionItem(f"replay/{one.value}") for one in complete_runs(start.removeprefix("replay/"))]
    others = ("server/", "inspect/", "local/", "replay/")
    names = [*load_prices().models, *(f"baseline/{name}" for name in NAMES), *others]
    return [CompletionItem(name) for name in names if name.startswith(start)]
