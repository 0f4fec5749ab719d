"""The tutorial is true: every command and every Python block of it is run, in order, in an empty folder."""

import re
import shlex
import warnings
from pathlib import Path

import pytest

from medthink.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"Save this as `([\w.]+)`:\n\n```toml\n(.*?)```", re.DOTALL)


def steps() -> list[str]:
    """What to run, in the order of the page: command lines and blocks of Python."""
    found: list[str] = []
    for kind, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        found += [body] if kind == "python" else [line.removeprefix("$ ") for line in body.splitlines()]
    return found


def follow(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it in this process, which has loaded the packages already: one process a command costs half a minute."""
    if not step.startswith("medthink "):
        with warnings.catch_warnings(action="error"):
            exec(compile(step, str(PAGE), "exec"), {})
        return
    monkeypatch.setattr("sys.argv", shlex.split(step))
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0, step


@pytest.mark.timeout(600)
def test_the_tutorial_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(steps()) > 12
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        Path(name).write_text(text, encoding="utf-8")
    for step in steps():
        follow(step, monkeypatch)
        assert "Traceback" not in capfd.readouterr().err
    assert Path("stats.svg").stat().st_size > 10_000
    assert "<img" in Path("case.html").read_text(encoding="utf-8")
    assert "<svg" in Path("sweep/overview.svg").read_text(encoding="utf-8")
    assert "<svg" in Path("report.html").read_text(encoding="utf-8")
