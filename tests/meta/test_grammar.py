"""The grammar of the command line, over click's tree: one thing one flag, one flag one meaning, no dead remedy."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import click
import pytest

import medthink
from medthink.cli import COMMANDS
from medthink.cli.flags import ListOption
from medthink.cli.shell.manual import all_commands

ROOT = Path(__file__).parents[2]
TREE = all_commands()
LEAVES = {name.removeprefix("medthink "): one for name, one in TREE.items() if not isinstance(one, click.Group)}
OPTIONS = [
    (name, param) for name, command in LEAVES.items() for param in command.params if isinstance(param, click.Option)
]
SHORT = {
    "-o": {"--out"},
    "-m": {"--model"},
    "-j": {"--judge"},
    "-t": {"--task"},
    "-c": {"--concurrency"},
    "-n": {"--count", "--limit"},
    "-q": {"--quiet"},
    "-v": {"--verbose"},
}
# Flags whose help, placeholder or kind of value differ between commands, and why.
VARIANTS = {
    "--out": "a file, a folder or a run",
    "--count": "says what is counted",
    "--task": "of a run, or of training examples",
    "--format": "each command writes its own formats",
    "--cluster": "says what is done there",
    "--data": "of several runs; of a server",
}
WRITERS = {
    "demo", "data pull", "data export", "data synth", "curate export", "run", "merge", "import", "export", "report",
    "exam", "reading lists", "reading training", "reading export", "submission pack", "submission hub", "board build",
    "board backup", "salvage",
}  # fmt: skip
# They print no result of their own, or none before they are stopped.
WITHOUT_JSON = {"demo", "completion", "help", "view", "serve", "board worker"}
# They need no benchmark: they read the run's own files alone.
WITHOUT_DATA = {"merge", "salvage", "reading export"}
# Groups with an action of their own, which the words after them are for.
ACTIONS = {"audit": "audit shortcuts", "models": "models list"}
# Flags of other programs, named in messages.
FOREIGN = {
    "--local-dir",
    "--head",
    "--tasks",
    "--epochs",
    "--log-dir",
    "--dataset",
    "--dataset_dir",
    "--media_dir",
    "--rlhf_type",
    "--fd",
}


def long_name(option: click.Option) -> str:
    return next(one for one in option.opts if one.startswith("--"))


def test_a_flag_has_one_text_one_placeholder_and_one_kind_of_value():
    told = defaultdict(set)
    for _, option in OPTIONS:
        kind = "" if isinstance(option.type, click.Path) else str(option.type)
        told[long_name(option)].add(((option.help or "").partition("  [")[0], option.metavar, kind, option.is_flag))
    assert {flag for flag, kinds in told.items() if len(kinds) > 1} == set(VARIANTS)


def test_a_letter_stands_for_one_flag():
    letters = defaultdict(set)
    for _, option in OPTIONS:
        for one in option.opts:
            if not one.startswith("--"):
                letters[one].add(long_name(option))
    assert letters == SHORT


def test_whatever_writes_takes_o():
    assert {name for name, option in OPTIONS if {"-o", "--out"} <= set(option.opts)} == WRITERS
    named = {name for name, one in LEAVES.items() for param in one.params if param.name == "out"}
    assert named == WRITERS


def test_whatever_opens_a_run_takes_its_benchmark():
    for name, command in LEAVES.items():
        words = [param.make_metavar(click.Context(command)) for param in command.params]
        arguments = " ".join(words[: sum(isinstance(param, click.Argument) for param in command.params)]).upper()
        opens = re.search(r"\bRUNS?\b", arguments) and name not in WITHOUT_DATA
        has_data = "DATA" in arguments or any("--data" in param.opts for param in command.params)
        assert has_data or not opens, f"{name} opens a run and has no --data"


def test_only_the_declared_groups_have_an_action_of_their_own():
    groups = {name.removeprefix("medthink "): one for name, one in TREE.items() if isinstance(one, click.Group)}
    has = {name: f"{name} {one.default}" for name, one in groups.items() if getattr(one, "default", None)}
    assert has == ACTIONS
    for name, action in ACTIONS.items():
        assert f"`medthink {name} " in (groups[name].help or "") and f"`medthink {action} " in (groups[name].help or "")


def test_json_is_everywhere_but_where_nothing_is_told():
    assert set(LEAVES) - {name for name, option in OPTIONS if "--json" in option.opts} == WITHOUT_JSON


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=[f"{name} {one.opts[-1]}" for name, one in OPTIONS])
def test_every_flag_is_explained_and_formed_alike(name, option):
    assert option.hidden or option.help, name
    assert not any(one.startswith("--no-") for one in option.opts), "a flag that only switches off cannot be undone"
    assert not option.multiple or isinstance(option, ListOption), "a list takes commas too"
    if not option.is_flag and not option.hidden and not isinstance(option.type, click.Choice):
        assert option.metavar, "a value has a placeholder"
    assert all("_" not in one for one in option.opts)


def test_whatever_asks_models_takes_the_same_flags():
    sending = {"--base-url", "--concurrency", "--rpm", "--tpm", "--timeout", "--max-wait", "--batch", "--wait"}
    sending |= {"--cancel-batches", "--preflight", "--max-usd", "--max-calls", "--prices"}
    sending |= {"--price", "--service-tier", "--forget-batch", "--dry-run"}
    flags = {name: {one for param in command.params for one in param.opts} for name, command in LEAVES.items()}
    asking = {name for name, has in flags.items() if "--base-url" in has}
    assert {"run", "judge", "exam", "curate leaks", "curate textonly"} <= asking
    assert {name: sending - flags[name] for name in asking if sending - flags[name]} == {}


ALL_FLAGS = {one for _, option in OPTIONS for one in (*option.opts, *option.secondary_opts)} | {"--help", "--version"}
FLAG = re.compile(r"(?<![\w-])--[a-z](?:[a-z-]*[a-z])?(?![\w-])")
COMMAND = re.compile(r"\bmedthink ((?:[a-z]+)(?: [a-z]+)?)")


def _texts(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_every_flag_and_command_that_a_message_names_is_there():
    package = Path(medthink.__file__).parent
    dead = []
    for path in set(package.rglob("*.py")) - set(package.rglob("style.py")):  # names of colours
        for line, text in _texts(path):
            dead += [f"{path.name}:{line}: {one}" for one in set(FLAG.findall(text)) - ALL_FLAGS - FOREIGN]
            for words in COMMAND.findall(text):
                group, _, rest = words.partition(" ")
                command = TREE.get(f"medthink {group}")
                if (command is None and f"`medthink {group}" in text) or (
                    isinstance(command, click.Group)
                    and rest
                    and f"{group} {rest}" not in LEAVES
                    and group not in ACTIONS
                ):
                    dead.append(f"{path.name}:{line}: medthink {words}")
    assert not dead, "\n".join(dead)


def _commands_in(text: str):
    """The command lines of a page: in its blocks of code and between backticks, continued lines joined."""
    code = "\n".join(re.findall(r"```.*?\n(.*?)```", text, re.DOTALL) + re.findall(r"`(medthink [^`]+)`", text))
    for line in code.replace("\\\n", " ").splitlines():
        if found := re.match(r"(?:\$ )?(?:time )?medthink ([a-z].*)", line.strip()):
            yield found[1].partition("   #")[0]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.name
)
def test_every_command_line_of_the_docs_is_one(page):
    if page.name == "commands.md":
        return
    for line in _commands_in(page.read_text(encoding="utf-8")):
        words = line.split()
        name = " ".join(words[:2]) if " ".join(words[:2]) in LEAVES else words[0]
        name = ACTIONS.get(name, name)
        if words[0] not in COMMANDS or name not in LEAVES:
            assert words[0] in COMMANDS, line
            continue
        known = {one for param in LEAVES[name].params for one in (*param.opts, *param.secondary_opts)}
        assert set(FLAG.findall(line)) - known - {"--help"} == set(), line
