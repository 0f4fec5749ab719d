"""The table of additions in docs/architecture.md: each is really built, touches the files it names, and works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import medthink
from additions import ADDITIONS, write_additions

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests/support"
TABLE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("| to add a |")[2]
ROWS = {line.split("|")[1].strip(): line for line in TABLE.splitlines() if re.match(r"\| [a-z]", line)}
# The most files of code for an addition, without tests and docs.
MOST = {"task": 5, "text of a submitter": 5, "kind of judging": 3}


def test_every_row_is_built() -> None:
    assert list(ROWS) == list(ADDITIONS)


def test_the_files_that_are_named_exist() -> None:
    paths = {
        name.split("NAME")[0] for row in ROWS.values() for name in re.findall(r"`((?:src|docs|tests)/[^`]+)`", row)
    }
    assert len(paths) > 15
    assert [name for name in sorted(paths) if not (ROOT / name).exists()] == []


def test_the_registries_that_are_named_stand_in_their_files() -> None:
    found = [pair for row in ROWS.values() for pair in re.findall(r"`(_?[A-Za-z]+)` in `(src/[^`]+)`", row)]
    assert len(found) >= 8
    for name, path in found:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE), (name, path)


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_touches_only_what_its_row_names(name: str) -> None:
    named = re.findall(r"`src/medthink/([^`]+)`", ROWS[name])
    touched = ADDITIONS[name].touched
    assert [path for path in touched if not any(_is_named(path, one) for one in named)] == []
    assert len([path for path in touched if path.endswith(".py")]) <= MOST.get(name, 2)


def _is_named(path: str, named: str) -> bool:
    """Whether a row's `folder/NAME.py` or `folder/` stands for the file."""
    return (
        re.fullmatch(re.escape(named).replace("NAME", r"\w+") + (".*" if named.endswith("/") else ""), path) is not None
    )


def test_all_additions_work_together(tmp_path: Path) -> None:
    copy = tmp_path / "src/medthink"
    # With what is compiled already: compiling it all would take longer than the rest.
    shutil.copytree(Path(medthink.__file__).parent, copy)
    write_additions(copy, ADDITIONS)
    found = os.pathsep.join(map(str, [copy.parent, SUPPORT]))
    command = [sys.executable, str(SUPPORT / "use_additions.py"), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": found, "COLUMNS": "160"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "hello from a new command" in done.stdout and "history-painful" in done.stdout
    assert "short-history" in done.stdout
