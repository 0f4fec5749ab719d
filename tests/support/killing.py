"""A command killed again and again at random instants, and what its server may have seen then."""

import random
import signal
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from processes import finish, medthink


class Mark(NamedTuple):
    """Where a kill fell: how many requests the server had seen, and which calls were finished on disk."""

    seen: int
    finished: set[Any]


def kill_and_resume(
    words: Sequence[object], server: Any, *, waits: Sequence[int], finished: Callable[[], set[Any]]
) -> list[Mark]:
    """Start the command, kill it after so many more requests, once for each wait; then let it come to its end."""
    marks: list[Mark] = []
    for wait in waits:
        process = medthink(*words)
        server.wait_for(server.requests + wait)
        process.send_signal(signal.SIGKILL)
        finish(process)
        server.wait_until_alone()
        mark = Mark(server.requests, finished())
        assert not marks or marks[-1].finished <= mark.finished, "a finished call was lost"
        marks.append(mark)
    code, _, err = finish(medthink(*words))
    assert code == 0, err
    return marks


def draw_waits(seed: int, kills: int, most: int) -> list[int]:
    """How many requests to wait for before each kill."""
    chance = random.Random(seed)
    return [chance.randint(1, most) for _ in range(kills)]


def check_repeats(marks: list[Mark], asked: Sequence[Hashable | None], *, concurrency: int) -> None:
    """No finished call is asked again, and no more were under way than may be; None is a request that was cut off."""
    begun, repeated = 0, []
    for seen, finished in marks:
        assert not finished & set(asked[seen:]), "a finished call was asked again"
        under_way = set(asked[begun:seen]) - finished - {None}
        repeated.append(len(under_way & set(asked[seen:])))
        assert len(under_way) <= concurrency, "more calls were under way than may be"
        begun = seen
    print(
        f"{len(marks)} kills: {len(asked)} requests, {sum(repeated)} repeated, at most {max(repeated)} after one kill"
    )
