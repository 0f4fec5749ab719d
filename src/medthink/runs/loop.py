"""The one event loop, opened here whether or not the caller (a notebook) has one running already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work and return its result; inside a running loop, on a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, work).result()
