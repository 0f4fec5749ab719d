"""The tree shows itself: no two modules import each other, and no folder has more entries than a reader takes in."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import medthink

ROOT = Path(medthink.__file__).parent
# The command line has a module for each group of commands.
WIDEST, WIDEST_CLI = 16, 20


def _name(path: Path) -> str:
    return ".".join(("medthink", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def _imported(name: str) -> set[str]:
    """The modules that are loaded when this one is: its imports at the top, those for type checkers aside."""
    found = set()
    for node in ast.parse(MODULES[name].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & MODULES.keys() or {node.module}
    return found - {name}


def test_no_two_modules_import_each_other() -> None:
    """Layers are kept by the import contracts; they do not see cycles inside a room."""
    try:
        TopologicalSorter({name: _imported(name) for name in MODULES}).prepare()
    except CycleError as error:
        raise AssertionError("imports go round: " + " → ".join(error.args[1])) from None


def test_no_folder_is_wider_than_a_reader_takes_in() -> None:
    entries: dict[Path, set[str]] = defaultdict(set)
    for path in MODULES.values():
        parts = path.relative_to(ROOT).parts
        for depth in range(1, len(parts)):
            entries[Path(*parts[:depth])].add(parts[depth])
    wide = {
        str(folder): len(names - {"__init__.py"})
        for folder, names in entries.items()
        if len(names - {"__init__.py"}) > (WIDEST_CLI if str(folder) == "cli" else WIDEST)
    }
    assert not wide, f"a folder in it that names what it holds? {wide}"
