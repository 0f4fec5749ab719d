"""Enter a command and turn what it raises into a message and an exit code."""

import keyword
import os
import sys
from importlib import import_module

import click

from medthink.cli import COMMANDS
from medthink.cli.dotenv import load_keys
from medthink.core.errors import MedThinkError
from medthink.core.suggest import suggest

HELP_FLAGS = ("-h", "--help")


def load_command(name: str) -> click.Command:
    """The top-level command of this name, from its module; called `command` if Python reserves the name."""
    module = import_module(COMMANDS[name].module)
    command: click.Command = getattr(module, "command" if keyword.iskeyword(name) else name)
    return command


def enter(words: list[str]) -> int:
    """Run the named command; every exit has one clear message and a documented code."""
    name, *rest = words
    if name not in COMMANDS:
        remedy = suggest(name, COMMANDS, "medthink --help lists the commands")
        return _complain(f"no such command: {name}\n  → {remedy}", 2)
    # The matrices here are small: one thread is faster than several waiting for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    command = load_command(name)
    try:
        load_keys()
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
    except SystemExit:
        # click and rich exit this way, with 1, when the output is closed.
        raise BrokenPipeError from None
    # click returns the command's exit code; a command that simply ends returns 0.
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"medthink: {message}\n")
    return code
