"""Doing together what many requests ask for at the same time."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_MOST = 100

Wanted = TypeVar("Wanted")
Answer = TypeVar("Answer")


class Together(Generic[Wanted, Answer]):
    """Work done in rounds, each in a thread: what is asked for during one round is done in the next, all at once.

    With one caller at a time this is a call in a thread; with fifty, they share one statement or transaction. `work`
    returns one answer for each thing asked for; if it raises, everybody of that round gets the error.
    """

    def __init__(self, work: Callable[[Sequence[Wanted]], Sequence[Answer]]) -> None:
        self._work = work
        self._waiting: list[tuple[Wanted, asyncio.Future[Answer]]] = []
        self._rounds: asyncio.Task[None] | None = None

    async def ask(self, wanted: Wanted) -> Answer:
        """The answer to this, from the next round."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, answered))
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._work_in_rounds())
        return await answered

    async def _work_in_rounds(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            done = asyncio.get_running_loop().run_in_executor(None, self._work, [wanted for wanted, _ in now])
            await asyncio.wait([done])
            self._answer([answered for _, answered in now], done)

    def _answer(self, waiting: Sequence[asyncio.Future[Answer]], done: asyncio.Future[Sequence[Answer]]) -> None:
        # Who has gone meanwhile needs no answer.
        here = [number for number, answered in enumerate(waiting) if not answered.cancelled()]
        if error := done.exception():
            for number in here:
                waiting[number].set_exception(error)
            return
        answers = done.result()
        for number in here:
            waiting[number].set_result(answers[number])
