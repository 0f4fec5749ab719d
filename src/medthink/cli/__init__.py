"""The command line: a table of commands, each imported only when it is called.

`medthink --help` is printed from this table without loading anything else, click included.
"""

import io
import os
import sys
from typing import Any, NamedTuple


class Command(NamedTuple):
    """One top-level command: its module, its summary, and the heading under which it is listed."""

    target: str
    summary: str
    group: str


_START, _DATA, _RUN, _RESULTS, _REASONING, _BOARD = "Start", "Data", "Running", "Results", "Reasoning", "Leaderboard"

COMMANDS = {
    "demo": Command("demo:demo", "Try everything on drawn sample data: no key, no network", _START),
    "doctor": Command("doctor:doctor", "What is installed, which keys are set, what is missing", _START),
    "completion": Command(
        "shell.completion:completion", "Print a script that completes commands, flags and runs", _START
    ),
    "help": Command("shell.manual:help_", "Show the help of a command, or write the man page", _START),
    "data": Command("data.data:data", "Pull, check, describe, show, export or make a benchmark", _DATA),
    "curate": Command("curate:curate", "Turn raw teaching cases into a benchmark", _DATA),
    "audit": Command("results.audit:audit", "Audit a benchmark for shortcuts, and runs for guessing or memory", _DATA),
    "run": Command("run.run:run", "Run a model on a benchmark, or continue a stopped run", _RUN),
    "sweep": Command("run.sweep:sweep", "Run models × conditions × tasks as one unit", _RUN),
    "status": Command("run.status:status", "Show how far a run or a sweep is", _RUN),
    "show": Command("run.show:show", "List a run's cases, or show one: prompts, replies, result", _RUN),
    "view": Command("serve:view", "Show runs and their cases in the browser, live and read-only", _RUN),
    "models": Command("models:models", "List the models known here, and refresh their prices", _RUN),
    "merge": Command("run.shards:merge", "Merge the shards of one run", _RUN),
    "salvage": Command("run.shards:salvage_run", "Rebuild a damaged ledger from what can be read of it", _RUN),
    "import": Command("run.exchange:import_replies", "Import replies to a run's requests from another program", _RUN),
    "export": Command("run.exchange:export_run", "Write a run as a log or as requests for another program", _RUN),
    "score": Command("results.score:score", "Score runs or predictions, every number with its uncertainty", _RESULTS),
    "compare": Command(
        "results.compare:compare", "Compare runs on the same cases: differences, wins and losses", _RESULTS
    ),
    "report": Command(
        "results.report:report", "Write one self-contained page about runs, with figures and tables", _RESULTS
    ),
    "judge": Command("judge:judge", "Have models judge a run's steps, discussions and findings", _REASONING),
    "exam": Command("exam:exam", "Examine judges on expert sentences with known errors", _REASONING),
    "agreement": Command(
        "results.agreement:agreement", "Compare readers and judges: agreement, effect of a judge's errors", _REASONING
    ),
    "reading": Command(
        "reading:reading", "Blinded reading lists for radiologists: make, train, mark, export", _REASONING
    ),
    "submission": Command(
        "submission:submission", "Pack, check or score a submission, or write it for the hub", _BOARD
    ),
    "submit": Command("submission:submit", "Upload a submission to a served board, and follow its checks", _BOARD),
    "serve": Command("serve:serve", "Serve a leaderboard, and cases to read blind, in the browser", _BOARD),
    "accounts": Command("accounts:accounts", "Manage the accounts of a served board: roles, invitations", _BOARD),
    "board": Command("board:board", "Manage a leaderboard: add, list, withdraw, back up, restore", _BOARD),
}

# Set by the shell's completion script when it asks for completions.
COMPLETE_VARIABLE = "_MEDTHINK_COMPLETE"
_EXAMPLE = "Example: medthink demo"


class _Output(io.FileIO):
    """Standard output that falls silent once its reader (`| head`) has gone: a command ends with its own exit code."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _fall_silent(self.fileno())
            return len(data)


def main() -> None:
    """Run `medthink` and leave with its exit code."""
    if sys.stdout is None:
        # So it is where a shell has closed it: `medthink … >&-`.
        sys.exit(_complain("standard output is closed\n  → open it, or send it to a file"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets a question mark in its place, never an error.
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(sys.stdout.fileno(), "w", closefd=False)),
            encoding=sys.stdout.encoding,
            errors="replace",
            line_buffering=sys.stdout.line_buffering,
        )
    try:
        code = _follow(sys.argv[1:])
        sys.stdout.flush()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        code = _complain(f"{place}{error.strerror}\n  → check the output path and its free space")
        _fall_silent(sys.stdout.fileno())
    sys.exit(code)


def _complain(message: str) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"medthink: {message}\n")
    return 2


def _fall_silent(output: int) -> None:
    """Stop writing to a closed output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)


def _follow(words: list[str]) -> int:
    """Carry out the command line; returns the exit code."""
    if COMPLETE_VARIABLE in os.environ:
        from medthink.cli.shell.completion import answer_shell

        return answer_shell()
    if words in ([], ["--help"], ["-h"]):
        sys.stdout.write(overview())
        return 0
    if words in (["--version"], ["-V"]):
        from medthink import __version__

        sys.stdout.write(f"medthink {__version__}\n")
        return 0
    from medthink.cli.command import run_command

    return run_command(words)


def overview() -> str:
    """What `medthink --help` prints."""
    return "\n".join(
        [
            "Usage: medthink COMMAND [OPTIONS] …",
            "",
            "The toolkit for multi-image diagnostic reasoning benchmarks.",
            "Research and education only.",
            *_listed_commands(),
            "",
            "`medthink help COMMAND` shows details; `medthink -V` shows the release.",
            "Exit codes: 0 done; 1 a negative result (errors found, alarm, limit reached);",
            "2 bad usage or input; 3 the network or a provider failed;",
            "4 some cases failed, the others are done; 130 interrupted.",
            _EXAMPLE,
            "",
        ]
    )


def _listed_commands() -> list[str]:
    """The commands under the headings of their groups."""
    width = max(map(len, COMMANDS))
    lines: list[str] = []
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {name:<{width}}  {one.summary}" for name, one in COMMANDS.items() if one.group == group]
    return lines
