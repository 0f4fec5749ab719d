"""`medthink doctor` and `--version`: what is installed, and of a key only whether it is set."""

import json
import subprocess
import sys
from importlib.metadata import metadata, version

import pytest

from medthink import __version__
from medthink.cli.command import run_command
from medthink.cli.shell.env_file import KEYS

SECRET = "zq7Secret"


def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run([sys.executable, "-m", "medthink", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"medthink {__version__}\n"
    assert __version__ == version("medthink")


def test_a_key_is_told_as_set_and_never_read_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", "")
    assert run_command(["doctor", "--json"]) == 0
    told = capsys.readouterr().out
    assert json.loads(told)["keys"] == dict.fromkeys(KEYS, False) | {"OPENAI_API_KEY": True}
    assert run_command(["doctor"]) == 0
    shown = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1] for line in shown.splitlines() if line.startswith(tuple(KEYS))}
    assert lines == dict.fromkeys(KEYS, "–") | {"OPENAI_API_KEY": "set"}
    assert SECRET[:4] not in told + shown


def test_it_names_packages_decoders_extras_weights_and_disk(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["medthink"] == __version__
    assert found["packages"]["pyarrow"] == version("pyarrow")
    assert found["decoders"]["Pillow"] == version("Pillow")
    declared = set(metadata("medthink").get_all("Provides-Extra") or ())
    assert found["extras"].keys() == declared - {"dev", "realserver"}  # those serve the tests
    assert {"RadGraph", "CheXbert", "BERTScore"} <= found["weights"].keys()
    assert found["disk_free_gib"] >= 0


def test_it_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run_command(["doctor"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
