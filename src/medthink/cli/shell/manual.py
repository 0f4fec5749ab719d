"""`medthink help`: the help of a command, and the man page of all, from what the commands say of themselves."""

import inspect
from collections.abc import Iterable, Iterator

import click

from medthink import __version__
from medthink.cli import COMMANDS, overview
from medthink.cli.command import load_command, run_command


@click.command(name="help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option("--man", is_flag=True, help="Print the manual of all commands, for man.")
def help_(words: tuple[str, ...], man: bool) -> int:
    """Show the help of a COMMAND, or of all commands.

    \b
    Example: medthink help run
    Example: medthink help data check
    Example: medthink help --man > ~/.local/share/man/man1/medthink.1
    """
    if man:
        click.echo(manual(), nl=False)
        return 0
    if words:
        return run_command([*words, "--help"])
    click.echo(overview(), nl=False)
    return 0


def all_commands() -> dict[str, click.Command]:
    """Every command by its full name, subcommands included."""
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = load_command(name)
        found[f"medthink {name}"] = command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for sub in command.list_commands(context):
                one = command.get_command(context, sub)
                assert one is not None
                found[f"medthink {name} {sub}"] = one
    return found


def manual() -> str:
    """The man page, in roff."""
    lines = [
        f'.TH MEDTHINK 1 "" "medthink {__version__}" "User commands"',
        ".SH NAME",
        r"medthink \- the toolkit for multi-image diagnostic reasoning benchmarks",
        ".SH SYNOPSIS",
        r".B medthink",
        r"\fICOMMAND\fR [\fIOPTIONS\fR] ...",
        ".SH DESCRIPTION",
        ".nf",
        *map(_escape, overview().splitlines()[2:]),
        ".fi",
        ".SH COMMANDS",
    ]
    for name, command in all_commands().items():
        lines += _section(name, command)
    return "\n".join([*lines, ""])


def _section(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name, help_option_names=[])
    yield f".SS {_escape(' '.join([name, *command.collect_usage_pieces(context)]))}"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield from _paragraph(paragraph)
    for param in command.params:
        record = param.get_help_record(context)
        if record is not None:
            yield from (".TP", rf"\fB{_escape(record[0])}\fR", _escape(record[1]))


def _paragraph(text: str) -> Iterable[str]:
    if text.startswith("\b"):
        return (".PP", ".nf", *map(_escape, text.splitlines()[1:]), ".fi")
    return (".PP", _escape(" ".join(text.split())))


def _escape(text: str) -> str:
    """The text as roff shows it: plain ASCII, no line is a request, and a hyphen is one that can be copied."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    plain = "".join(one if one.isascii() else rf"\[u{ord(one):04X}]" for one in plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain
