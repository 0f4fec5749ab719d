"""Call a command inside the tests' own process."""

from collections.abc import Sequence
from typing import Any

import click
from click.testing import CliRunner, Result

from medthink.cli.command import HELP_FLAGS


def call_command(command: click.Command, words: Sequence[object], **options: Any) -> Result:
    """What the command says to these words.

    It is called as the shell's door does: click keeps the help flags of a command's first call for good.
    """
    return CliRunner().invoke(command, list(map(str, words)), help_option_names=list(HELP_FLAGS), **options)
