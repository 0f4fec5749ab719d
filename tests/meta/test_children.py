"""A test that leaves a process behind fails, and a suite in the background can still interrupt its children."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).resolve().parents[1] / "support"
CONFTEST = """
import children

pytest_plugins = ["children"]
children._PATIENCE_S = 1.0
"""
LEAVES_ONE = """
import subprocess, sys

def test_that_leaves_a_process():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    subprocess.run([sys.executable, "-c", code], check=True)
"""
INTERRUPTS_ONE = """
import signal, subprocess, sys

def test_that_interrupts_its_child():
    code = "import time; print('up', flush=True); time.sleep(20)"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout.readline() == "up\\n"
        child.send_signal(signal.SIGINT)
        assert child.wait() == -signal.SIGINT
"""


def run_pytest(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    """pytest over one test, as a job whose parent ignores Ctrl-C."""
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {SUPPORT}\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_one.py").write_text(test)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_children_of_a_suite_in_the_background_can_be_interrupted(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, INTERRUPTS_ONE)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the processes left behind")
def test_a_process_left_behind_fails_its_test_and_is_ended(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, LEAVES_ONE)
    assert done.returncode == 1
    assert "processes left behind" in done.stdout and "time.sleep(600)" in done.stdout
