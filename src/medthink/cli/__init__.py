"""The command line: a table of commands, each imported only when it is called.

`medthink --help` is printed from this table without loading anything else, click included.
"""

import io
import os
import sys
from typing import NamedTuple


class Command(NamedTuple):
    """One top-level command: where it lives and what it is for."""

    module: str
    summary: str


COMMANDS = {
    "data": Command("medthink.cli.data", "Pull, check, describe, show, export or make a benchmark"),
    "run": Command("medthink.cli.run", "Run a model over a benchmark; run it again to continue"),
    "show": Command("medthink.cli.show_cases", "List a run's cases, or show one: its prompts, replies and result"),
    "merge": Command("medthink.cli.merge", "Put the shards of one run together"),
    "score": Command("medthink.cli.score", "Score runs or predictions, every number with its uncertainty"),
    "compare": Command("medthink.cli.compare", "Compare runs on the same cases: differences, and cases won or lost"),
    "report": Command("medthink.cli.report", "Write runs as one self-contained page, with figures and tables"),
    "judge": Command("medthink.cli.judge", "Have models judge a run's steps, discussions and findings"),
    "agree": Command("medthink.cli.agree", "Compare readers and judges: agreement, and what a judge's errors do"),
    "reading": Command("medthink.cli.reading", "Make blinded reading lists for radiologists"),
    "probe": Command("medthink.cli.probe", "Audit a benchmark for shortcuts, and runs for mere guessing"),
    "demo": Command("medthink.cli.demo", "The whole job on phantom data: no key, no network"),
    "doctor": Command("medthink.cli.doctor", "What is installed, which keys are set, what is missing"),
}

_EXAMPLE = "Example: medthink demo"


def main() -> None:
    """Run `medthink` and leave with its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets a question mark in its place, never an error.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = _follow(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output (`| head`) has had enough; that is not an error.
        code = _fall_silent(0)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"medthink: {place}{error.strerror}\n  → check the place written to and its free space\n")
        code = _fall_silent(2)
    sys.exit(code)


def _fall_silent(code: int) -> int:
    """Write nothing more to an output that takes nothing more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _follow(words: list[str]) -> int:
    """Do what the words say; returns the exit code."""
    if words in ([], ["--help"], ["-h"]):
        sys.stdout.write(overview())
        return 0
    if words == ["--version"]:
        from medthink import __version__

        sys.stdout.write(f"medthink {__version__}\n")
        return 0
    from medthink.cli.door import enter

    return enter(words)


def overview() -> str:
    """What `medthink --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: medthink COMMAND [OPTIONS] …",
            "",
            "The toolkit for multi-image diagnostic reasoning benchmarks.",
            "Research and education only.",
            "",
            "Commands:",
            *lines,
            "",
            "`medthink COMMAND --help` tells more; `medthink --version` names the release.",
            "Exit codes: 0 done; 1 the answer is no (errors found, alarm, limit reached);",
            "2 bad usage or input; 3 the network or a provider failed; 130 interrupted.",
            _EXAMPLE,
            "",
        ]
    )
