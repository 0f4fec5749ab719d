"""Which runs are not distinguishable, for tables: shared letters, groups, and tiers."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
MOST_LETTERS = 200


def letter_display(apart: Bools, order: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The compact letter display (Piepho 2004): two runs share a letter exactly when they are not `apart`.

    One letter for each maximal set of runs of which no two are apart, in the `order` of the runs. If there would be
    more than 200, no run has any.
    """
    together = {i: {j for j in order if j != i and not apart[i, j]} for i in order}
    cliques = list(islice(_cliques(together, [], set(order), set()), MOST_LETTERS + 1))
    if len(cliques) > MOST_LETTERS:
        return dict.fromkeys(order, ())
    place = {run: k for k, run in enumerate(order)}
    listed = sorted(sorted(place[run] for run in clique) for clique in cliques)
    return {run: tuple(_letter(k) for k, clique in enumerate(listed) if place[run] in clique) for run in order}


def tiers_of(apart: Bools, order: Sequence[int]) -> dict[int, int]:
    """The finest tiers: every run of a higher one is `apart` from every run of a lower one.

    They are the connected parts of the graph of runs that are not apart, numbered in the `order` of the runs.
    """
    tiers: dict[int, int] = {}
    for first in order:
        if first in tiers:
            continue
        number, waiting = len(set(tiers.values())) + 1, [first]
        while waiting:
            run = waiting.pop()
            if run not in tiers:
                tiers[run] = number
                waiting += [other for other in order if other not in tiers and not apart[run, other]]
    return tiers


def groups_of(apart: Bools, order: Sequence[int]) -> dict[int, int]:
    """Groups for a table in the `order` of the runs: each begins with the next run that is `apart` from the last start.

    No run of a group is apart from its first run. Runs of two groups may still not be apart.
    """
    groups: dict[int, int] = {}
    first = number = 0
    for run in order:
        if not groups or apart[first, run]:
            first, number = run, number + 1
        groups[run] = number
    return groups


def _cliques(together: dict[int, set[int]], inside: list[int], open_: set[int], done: set[int]) -> Iterator[list[int]]:
    """The largest sets of runs that are all together (Bron and Kerbosch 1973, with a pivot)."""
    if not open_ and not done:
        yield inside
        return
    pivot = max(open_ | done, key=lambda run: len(together[run] & open_))
    for run in sorted(open_ - together[pivot]):
        yield from _cliques(together, [*inside, run], open_ & together[run], done & together[run])
        open_, done = open_ - {run}, done | {run}


def _letter(number: int) -> str:
    """a … z, aa, ab …"""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters
