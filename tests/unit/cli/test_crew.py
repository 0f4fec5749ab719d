"""Processes that work beside a server end with it, and quietly."""

import subprocess
import sys

FOLLOWER = "import time; from medthink.cli.workers import follow_parent; follow_parent(); time.sleep({seconds})"


def start(seconds: float) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-c", FOLLOWER.format(seconds=seconds)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_one_that_ends_by_itself_says_nothing():
    with start(0.3) as child:
        assert (child.wait(), child.stderr.read()) == (0, b"")


def test_one_whose_parent_is_gone_ends():
    with start(60) as child:
        child.stdin.close()
        assert (child.wait(timeout=120), child.stderr.read()) == (0, b"")
