"""Write docs/commands.md from what the commands say of themselves: `make docs`."""

import sys
from pathlib import Path

import click

from medthink.cli import overview
from medthink.cli.command import HELP_FLAGS
from medthink.cli.shell.manual import all_commands

PAGE = Path(__file__).parent / "commands.md"


def build() -> str:
    """The whole page."""
    parts = ["# Commands", "", "Made by `make docs` from the commands' own help.", "", _block(overview())]
    for name, command in all_commands().items():
        context = click.Context(
            command, info_name=name, max_content_width=100, terminal_width=100, help_option_names=list(HELP_FLAGS)
        )
        parts += [f"## `{name}`", "", _block(command.get_help(context))]
    return "\n".join(parts)


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(build(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
