"""`medthink view` opens a port on this machine and says what it cannot do."""

import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from medthink.cli.command import run_command
from medthink.web.app.server import open_port
from web_pages import make_runs


@pytest.mark.parametrize(
    ("words", "message"),
    [(["nowhere"], "nowhere is not a folder"), (["."], "no run below"), ([], "no run below this folder")],
)
def test_what_cannot_be_shown_is_said(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command(["view", "--no-browser", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_port_in_use_is_named(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run_command(["view", "--no-browser", "--port", str(port), str(make_runs(tmp_path))]) == 2
    assert f"port {port} is in use" in capsys.readouterr().err


def test_the_port_is_open_on_this_machine_alone():
    opened = open_port(None)
    try:
        assert opened.getsockname()[0] == "127.0.0.1"
    finally:
        opened.close()


def test_what_is_not_installed_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "medthink.web.app.server", None)
    assert run_command(["view", str(tmp_path)]) == 2
    assert "medthink[web]" in capsys.readouterr().err


def test_it_serves_until_it_is_interrupted(tmp_path):
    command = [sys.executable, "-m", "medthink", "view", "--no-browser", str(make_runs(tmp_path))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("3 runs at http://127.0.0.1:")
            address = line.split()[3]
            for _ in range(50):
                try:
                    page = urllib.request.urlopen(address, timeout=5).read().decode()
                    break
                except ConnectionError:
                    time.sleep(0.1)
            assert ">seeing<" in page
        finally:
            process.send_signal(2)
            assert process.wait(timeout=120) == 130
        assert "Traceback" not in process.stderr.read()
