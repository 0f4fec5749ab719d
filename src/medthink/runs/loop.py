"""The one event loop, opened here whether or not the caller (a notebook) has one running already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work and return its result; inside a running loop, on a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _run_aside(work)


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
            # The thread does not hear of it, and leaving waits for the thread: the work is told to stop.
            task = started.result()
            task.get_loop().call_soon_threadsafe(task.cancel)
            raise
