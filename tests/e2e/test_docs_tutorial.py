"""The tutorial is true: every command and every Python block of it is run, in order, in an empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"Save this as `([\w.]+)`:\n\n```toml\n(.*?)```", re.DOTALL)


def steps() -> list[list[str]]:
    """What to run, in the order of the page."""
    found = []
    for kind, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            found.append([sys.executable, "-W", "error", "-c", body])
            continue
        for line in body.splitlines():
            words = shlex.split(line.removeprefix("$ "))
            assert words[0] == "medthink", line
            found.append([sys.executable, "-m", *words])
    return found


@pytest.mark.timeout(600)
def test_the_tutorial_runs_from_top_to_bottom(tmp_path):
    assert len(steps()) > 12
    for name, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in steps():
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    assert (tmp_path / "stats.svg").stat().st_size > 10_000
    assert "<img" in (tmp_path / "case.html").read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "sweep/overview.svg").read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
