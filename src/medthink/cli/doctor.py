"""`medthink doctor`: what is installed and what is missing."""

import os
import platform
import re
import shutil
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from medthink import __version__
from medthink.cli.flags import json_flag
from medthink.cli.output import console, print_json, print_table
from medthink.cli.shell.env_file import KEYS

# Extras for the tests of this package, of no use to its users.
_FOR_TESTS = ("dev", "realserver")
_REQUIREMENT = re.compile(r"""([\w.-]+)[^;]*(?:;.*\bextra == ['"]([\w-]+)['"])?""")
GIB = 1024**3


@click.command()
@json_flag
def doctor(as_json: bool) -> None:
    """Show what is installed, which extras, keys and weights are available, and how much disk space is free.

    The values of keys are never shown, only whether they are set.

    Example: medthink doctor --json
    """
    found = examine()
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(f"MedThink {found['medthink']} on Python {found['python']}, {found['platform']}")
    out.print(f"Disk: {found['disk_free_gib']} GiB free here\n")
    for title, columns, rows in _sections(found):
        out.print(print_table(title, columns, rows))
        out.print()


def examine() -> dict[str, object]:
    """Everything `doctor` reports, as plain data."""
    from medthink.cases.images.content import decoder_versions
    from medthink.metrics.radcliq.weights import find_weights

    return {
        "medthink": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "disk_free_gib": round(shutil.disk_usage(Path.cwd()).free / GIB, 1),
        "decoders": decoder_versions(),
        "packages": {name: _version(name) for name in sorted(_required()[""])},
        "extras": {extra: all(map(_version, names)) for extra, names in extras().items()},
        "keys": {name: bool(os.environ.get(name)) for name in KEYS},
        "weights": find_weights(),
    }


def _sections(found: dict[str, object]) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    def rows(name: str) -> dict[str, object]:
        part = found[name]
        assert isinstance(part, dict)
        return part

    return [
        ("Packages", ("package", "version"), [(name, str(v or "missing")) for name, v in rows("packages").items()]),
        ("Image decoders", ("decoder", "version"), [(name, str(v)) for name, v in rows("decoders").items()]),
        (
            "Extras",
            ("extra", "state", "how to install it"),
            [
                (name, "installed" if there else "–", "" if there else f"pip install 'medthink[{name}]'")
                for name, there in rows("extras").items()
            ],
        ),
        ("Keys", ("variable", "state", "for"), [(n, "set" if s else "–", KEYS[n]) for n, s in rows("keys").items()]),
        (
            "Weights for RadCliQ",
            ("of", "where"),
            [(name, str(where or "not found")) for name, where in rows("weights").items()],
        ),
    ]


def extras() -> dict[str, list[str]]:
    """The packages of every extra that a user may install, as the package itself declares them."""
    return {name: packages for name, packages in _required().items() if name not in ("", *_FOR_TESTS)}


def _required() -> dict[str, list[str]]:
    """The names of the required packages by extra; those of the default install are under ""."""
    found: dict[str, list[str]] = {"": []}
    for line in requires("medthink") or ():
        if match := _REQUIREMENT.match(line):
            found.setdefault(match[2] or "", []).append(match[1])
    return found


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
