"""The loop that the work of a run is done on: whatever interrupts it, it ends."""

import _thread
import asyncio
import os
import signal
import threading

import pytest

from medthink.runs.engine import interrupted_by_signals, run_to_end


@pytest.fixture
def ctrl_c_is_heard():
    """As in a task of Ray's; a suite in the background is told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_without_a_signal_ends_a_loop_that_waits(ctrl_c_is_heard):
    """Ray cancels a task in this way, which wakes nothing that waits for a socket."""
    woken: list[str] = []

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        threading.Timer(0.2, _thread.interrupt_main).start()  # the loop waits by then
        loop.call_later(100, woken.append, "by its own clock")
        await asyncio.sleep(3600)

    with pytest.raises(KeyboardInterrupt):
        run_to_end(wait())
    assert woken == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_interrupt_work_without_a_loop(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
