"""Texts in batches of similar length, as large as memory allows."""

import os
from collections.abc import Callable, Iterator, Sequence

Advance = Callable[[int], None]
"""Called with the number of further texts done."""

# Memory for one padded token of a base-size encoder: its activations and its share of the attention.
_BYTES_A_TOKEN = 128 * 1024
_SHARE_OF_MEMORY = 0.25
_FEWEST_TOKENS = 1_024
# Beyond this a larger batch is no faster on a CPU.
_MOST_TOKENS = 8_192


def token_budget() -> int:
    """How many padded tokens may be encoded at once with the memory that is free now."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # a system that does not say
        return _FEWEST_TOKENS
    return max(_FEWEST_TOKENS, min(_MOST_TOKENS, int(free * _SHARE_OF_MEMORY) // _BYTES_A_TOKEN))


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices of the texts, shortest first, in batches of at most this many tokens after padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[place] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def advance_nothing(done: int) -> None:
    """Ignore progress."""
