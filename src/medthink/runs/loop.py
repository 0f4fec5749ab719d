"""The one event loop, opened here whether or not the caller (a notebook) has one running already."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")
# How long Ctrl-C waits for the loop to react.
_PATIENCE_S = 1.0
# How often a waiting loop looks for an interrupt that came without a signal.
_PULSE_S = 0.5
# Closing the terminal or a scheduler ending the job stops the work like Ctrl-C.
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work and return its result; inside a running loop, on a separate thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with _interrupts_heard() as is_ignored:
            return asyncio.run(_insist(work, is_ignored=is_ignored))
    return _run_aside(work)


@contextmanager
def _interrupts_heard() -> Iterator[bool]:
    """Have the loop install its handler of Ctrl-C, through which SIGTERM and SIGHUP end the work too.

    It does not where Ctrl-C is ignored, as in a command that a script starts with `&`; says whether that is so.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield False
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt work without a loop as Ctrl-C does; what is ignored stays ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


async def _insist(work: Coroutine[Any, Any, Result], *, is_ignored: bool) -> Result:
    _keep_awake(asyncio.get_running_loop())
    with _hard_interrupts(is_ignored=is_ignored):
        try:
            return await work
        except KeyboardInterrupt:
            # The loop raises it itself when the task ends this way; raising it twice would print a traceback.
            raise asyncio.CancelledError from None


def _keep_awake(loop: asyncio.AbstractEventLoop) -> None:
    """Wake the loop now and then: Ray cancels a task by an interrupt without a signal, which wakes nothing."""
    loop.call_later(_PULSE_S, _keep_awake, loop)


@contextmanager
def _hard_interrupts(*, is_ignored: bool) -> Iterator[None]:
    """Let Ctrl-C (unless it is ignored), SIGTERM and SIGHUP all end the work in the same way.

    Work that blocks the loop, such as training a baseline, is interrupted at once.
    """
    ask_to_stop = signal.getsignal(signal.SIGINT)  # the loop's default: it cancels the task at its next iteration
    has_timers = hasattr(signal, "setitimer")  # not on Windows
    if not has_timers or threading.current_thread() is not threading.main_thread() or not callable(ask_to_stop):
        yield
        return
    before = {number: signal.getsignal(number) for number in (*_STOPS, signal.SIGALRM)}
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for number in _STOPS:
        # What is ignored (nohup ignores SIGHUP) stays ignored.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _then_insist(ask_to_stop))
    if is_ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _then_insist(ask_to_stop: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
    loop = asyncio.get_running_loop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
        # A loop that reacts has been notified, and its clean-up (closing the ledger) must not be interrupted.
        loop.call_soon_threadsafe(signal.setitimer, signal.ITIMER_REAL, 0)
        ask_to_stop(number, frame)

    return interrupt


def _run_aside(work: Coroutine[Any, Any, Result]) -> Result:
    started: Future[asyncio.Task[Result]] = Future()

    async def begin() -> Result:
        task = asyncio.ensure_future(work)
        started.set_result(task)
        return await task

    with ThreadPoolExecutor(1) as aside:
        result = aside.submit(asyncio.run, begin())
        try:
            return result.result()
        except KeyboardInterrupt:
            # The thread is not notified, and leaving waits for the thread, so the work is told to stop.
            task = started.result()
            task.get_loop().call_soon_threadsafe(task.cancel)
            raise
