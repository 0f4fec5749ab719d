"""The surface is asserted: exports, what `--help` loads, that every command is documented and explained."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import medthink
from build_commands import PAGE, build
from medthink.cli import COMMANDS, overview
from medthink.cli.command import HELP_FLAGS, run_command
from medthink.cli.shell.manual import all_commands
from medthink.core.numbers import as_percent

HEAVY = {"numpy", "pyarrow", "PIL", "aiohttp", "torch", "litestar", "scipy", "sklearn", "matplotlib", "click", "rich"}


def test_exports_are_these_and_resolve():
    assert set(medthink.__all__) == {
        "__version__",
        "Benchmark",
        "Case",
        "Image",
        "Question",
        "Reference",
        "Condition",
        "Run",
        "run",
        "DataError",
        "MedThinkError",
        "ModelError",
        "UsageError",
        "default_condition",
        "Scores",
        "Comparison",
        "check",
        "compare",
        "judge",
        "report",
        "reward",
        "synth",
    }
    for name in medthink.__all__:
        assert getattr(medthink, name) is not None
    with pytest.raises(AttributeError):
        _ = medthink.nothing_of_the_kind


def test_help_loads_nothing_heavy():
    code = "import sys; sys.argv=['medthink','--help']; from medthink.cli import main; main(); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.split(".")[0] for name in shown.splitlines()[-1].split()}
    assert not loaded & HEAVY


def test_overview_names_every_command():
    for name in COMMANDS:
        assert re.search(rf"^  {name}\b", overview(), re.MULTILINE)
    assert max(map(len, overview().splitlines())) <= 80


def test_the_help_of_a_group_cuts_no_sentence_off(capsys):
    assert run_command(["data", "--help"]) == 0
    shown = capsys.readouterr().out.split("Commands:")[1]
    assert "..." not in shown and shown.count(".\n") == 6


def test_every_command_has_a_docs_heading():
    text = PAGE.read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ `(medthink [^`]+)`$", text, re.MULTILINE))
    assert headings == set(all_commands())


def test_the_docs_page_is_what_the_commands_say():
    assert PAGE.read_text(encoding="utf-8") == build(), "run `make docs`"


@pytest.mark.parametrize(("name", "command"), all_commands().items())
def test_every_command_shows_an_example(name, command):
    assert command.help, name
    examples = re.findall(r"Example: (medthink .+)", command.help)
    assert examples, name
    # However narrow the terminal, an example is one line: it can be pasted.
    narrow = click.Context(command, terminal_width=60, max_content_width=60, help_option_names=list(HELP_FLAGS))
    shown = command.get_help(narrow)
    assert [example for example in examples if f"Example: {example}\n" not in shown + "\n"] == []


@pytest.mark.parametrize(("name", "command"), all_commands().items())
def test_whatever_prints_a_table_prints_json_too(name, command):
    if isinstance(command, click.Group):
        return
    has_table = _calls_one_of({"table", "show_progress"}, command.callback.__module__, command.callback.__name__)
    has_json = any("--json" in param.opts for param in command.params)
    assert has_json or not has_table, f"{name} prints a table and takes no --json"


def _calls_one_of(wanted: set[str], module: str, function: str) -> bool:
    """Whether a function of the command line calls one of these, by itself or through others of `medthink.cli`."""
    seen, left = set(), [(module, function)]
    while left:
        module, function = left.pop()
        if (module, function) in seen or not module.startswith("medthink.cli"):
            continue
        seen.add((module, function))
        tree = ast.parse(Path(find_spec(module).origin).read_text(encoding="utf-8"))
        bodies = [node for node in tree.body if getattr(node, "name", "") == function]
        if function in wanted and bodies:
            return True
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        homes = {alias.asname or alias.name: (node.module, alias.name) for node in imports for alias in node.names}
        names = {node.id for body in bodies for node in ast.walk(body) if isinstance(node, ast.Name)}
        left += [homes.get(name, (module, name)) for name in names]
    return False


@pytest.mark.parametrize(("name", "command"), all_commands().items())
def test_every_command_takes_h(name, command, capsys):
    _, *words = name.split()
    assert run_command([*words, "-h"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: {name}")


def test_no_message_tells_to_use_the_makefile():
    """Whoever installed a wheel has neither the Makefile nor the sources."""
    package = Path(medthink.__file__).parent
    tells = re.compile(r"[\"'`(→] ?make (demo|test|check|docs|bench|lock)\b|pip install (-e|--editable)")
    assert [path for path in package.rglob("*.py") if tells.search(path.read_text(encoding="utf-8"))] == []


def test_percent_signs_stand_in_one_form():
    """A share is shown by `as_percent`; Python's own `%` leaves no room before the sign."""
    package = Path(medthink.__file__).parent
    found = [path for path in package.rglob("*.py") if re.search(r":[^{}\"]*%\}", path.read_text(encoding="utf-8"))]
    assert found == []
    assert (as_percent(0.3412), as_percent(1.0, 0)) == ("34.1 %", "100 %")
