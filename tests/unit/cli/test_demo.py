"""The demo fits one screen, says all with `--verbose`, and does nothing twice."""

import pytest

from medthink.cli import demo
from medthink.cli.command import run_command


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A place for a demo on a small benchmark."""
    monkeypatch.setattr(demo, "CASES", 40)
    monkeypatch.setattr(demo, "SHARES", (0, 100))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "demo"


def test_one_screen_then_nothing_twice_then_everything(small, capsys):
    out = small
    assert run_command(["demo", "--out", str(out)]) == 0
    first = capsys.readouterr().out
    assert len(first.splitlines()) <= 40
    assert "images-100  10 of 10" in first
    assert "Diagnostic gain of images-100: " in first
    assert first.splitlines()[-1].startswith(f"Open {out / 'report.html'}")
    assert len(list(out.glob("runs/*/ledger.sqlite"))) == 6
    assert run_command(["demo", "--out", str(out), "--verbose"]) == 0
    everything = capsys.readouterr().out
    assert everything.count("$ medthink ") == 10
    assert "Written steps" in everything
    # Scoring and judging read ledgers; no call was made again.
    calls = [line for line in everything.splitlines() if "calls made in all sessions" in line]
    assert calls == [line for line in first.splitlines() if "calls made in all sessions" in line]
    assert out.joinpath("report.html").is_file()
