"""The command line: a table of commands, each imported only when it is called.

`medthink --help` is printed from this table without loading anything else, click included.
"""

import sys
from typing import NamedTuple


class Command(NamedTuple):
    """One top-level command: where it lives and what it is for."""

    module: str
    summary: str


COMMANDS = {
    "data": Command("medthink.cli.data", "Pull, check, describe, show, export or make a benchmark"),
    "run": Command("medthink.cli.run", "Run a model over a benchmark; every call kept, continued by running it again"),
    "merge": Command("medthink.cli.merge", "Put the shards of one run together"),
    "score": Command("medthink.cli.score", "Score runs or predictions, every number with its uncertainty"),
    "compare": Command("medthink.cli.compare", "Compare runs on the same cases: differences, flips, ranks"),
    "report": Command("medthink.cli.report", "Write runs as one self-contained page, with figures and tables"),
    "judge": Command("medthink.cli.judge", "Judge a run's steps, discussions and findings, by one model or several"),
    "agree": Command("medthink.cli.agree", "Compare readers and judges: agreement, and what a judge's errors do"),
    "reading": Command("medthink.cli.reading", "Make blinded reading lists for radiologists"),
    "probe": Command("medthink.cli.probe", "Audit a benchmark for shortcuts, and runs for what they add to guessing"),
    "demo": Command("medthink.cli.demo", "The whole job on phantom data, from data to report: no key, no network"),
    "doctor": Command("medthink.cli.doctor", "What is installed, which keys are set, what is missing"),
}

_EXAMPLE = "Example: medthink demo"


def main() -> None:
    """Run `medthink` and leave with its exit code."""
    words = sys.argv[1:]
    if words in ([], ["--help"], ["-h"]):
        sys.stdout.write(overview())
        return
    if words == ["--version"]:
        from medthink import __version__

        sys.stdout.write(f"medthink {__version__}\n")
        return
    from medthink.cli.door import enter

    sys.exit(enter(words))


def overview() -> str:
    """What `medthink --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: medthink COMMAND [OPTIONS] …",
            "",
            "The toolkit for multi-image diagnostic reasoning benchmarks. Research and education only.",
            "",
            "Commands:",
            *lines,
            "",
            "`medthink COMMAND --help` tells more; `medthink --version` says which one this is.",
            "Exit codes: 0 done, 1 the answer is no, 2 bad usage or input, 3 the outside failed, 130 interrupted.",
            _EXAMPLE,
            "",
        ]
    )
