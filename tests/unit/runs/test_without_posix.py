"""What Windows does not have is done without: a run and a check come to their end, and the missing lock is told."""

import subprocess
import sys
from pathlib import Path

from small_benchmark import write_benchmark

WITHOUT = """
import os, signal, sys
sys.modules["fcntl"] = sys.modules["resource"] = None
for name in ("setitimer", "SIGALRM", "ITIMER_REAL"):
    delattr(signal, name)
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
from medthink.cli import main
main()
"""


def run_without(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_says_in_one_line_that_there_is_no_lock(tmp_path: Path) -> None:
    bench = write_benchmark(tmp_path / "bench", cases=3)
    done = run_without("run", bench, "--model", "baseline/random", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "no file locks" in line]
    assert len(told) == 1 and str(tmp_path / "run") in told[0]
    assert len((tmp_path / "run/predictions.jsonl").read_text().splitlines()) == 3


def test_images_are_checked(tmp_path: Path) -> None:
    bench = write_benchmark(tmp_path / "bench", cases=3)
    done = run_without("data", "check", bench, "--images", "--json")
    assert '"pixels_checked":true' in done.stdout.replace(" ", ""), done.stderr
