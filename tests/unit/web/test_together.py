"""What many ask for at the same time is done in one round."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from medthink.web.together import Together


class GatedWork:
    """Doubles numbers, once its gate is open; remembers its rounds."""

    def __init__(self) -> None:
        self.rounds: list[list[int]] = []
        self.begun, self.gate = threading.Event(), threading.Event()

    def __call__(self, asked: Sequence[int]) -> list[int]:
        self.rounds.append(list(asked))
        self.begun.set()
        self.gate.wait()
        if 0 in asked:
            raise ZeroDivisionError
        return [number * 2 for number in asked]


async def _ask_during_a_round(work: GatedWork, *more: int) -> tuple[list[asyncio.Task[int]], Together[int, int]]:
    """Ask for 1, and for the others while that round is at its gate; then open the gate."""
    together = Together(work)
    tasks = [asyncio.create_task(together.ask(1))]
    await asyncio.to_thread(work.begun.wait)
    tasks += [asyncio.create_task(together.ask(number)) for number in more]
    await asyncio.sleep(0)
    return tasks, together


def test_what_is_asked_for_during_a_round_is_done_in_the_next_all_at_once():
    work = GatedWork()

    async def ask() -> list[int]:
        tasks, _ = await _ask_during_a_round(work, 2, 3, 4)
        work.gate.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(ask()) == [2, 4, 6, 8]
    assert work.rounds == [[1], [2, 3, 4]]


def test_an_error_is_told_to_everybody_of_its_round_and_to_nobody_else():
    work = GatedWork()

    async def ask() -> None:
        tasks, together = await _ask_during_a_round(work, 0, 3)
        work.gate.set()
        first, *others = await asyncio.gather(*tasks, return_exceptions=True)
        assert first == 2
        assert [type(one) for one in others] == [ZeroDivisionError] * 2
        assert await together.ask(5) == 10

    asyncio.run(ask())


def test_who_goes_away_keeps_nobody_waiting():
    work = GatedWork()

    async def ask() -> None:
        tasks, _ = await _ask_during_a_round(work, 2)
        tasks[0].cancel()
        work.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert await tasks[1] == 4

    asyncio.run(ask())
