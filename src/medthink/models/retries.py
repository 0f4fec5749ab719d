"""Whether and when to try again, by the kind of the error."""

import random

import msgspec

from medthink.models.errors import ErrorKind, ModelError

# How many attempts a call has if the last one failed in this way. An invalid answer is paid for each time.
MAX_TRIES: dict[ErrorKind, int] = {
    "rate_limit": 10,
    "server": 6,
    "connection": 6,
    "invalid_reply": 4,
    "timeout": 3,
    "invalid_json": 3,
    "oversized": 2,
}


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Waits double from `first_s` up to `most_s`.

    `patience_s` is the longest time a call waits: for a provider that asks for a pause, or for a server to come back.
    """

    first_s: float = 1.0
    most_s: float = 60.0
    patience_s: float = 600.0


def is_final(error: ModelError, tries: int, backoff: Backoff) -> bool:
    """Whether there were enough attempts, or another is pointless."""
    if not error.retryable or tries >= MAX_TRIES[error.kind]:
        return True
    return error.retry_after_s is not None and error.retry_after_s > backoff.patience_s


def choose_wait_s(error: ModelError, tries: int, backoff: Backoff, chance: random.Random) -> float:
    """The wait before the next try: never shorter than the provider asks for, and randomised."""
    ceiling = min(backoff.most_s, backoff.first_s * 2.0 ** (tries - 1))
    jittered = ceiling * chance.uniform(0.5, 1.0)
    if error.retry_after_s is None:
        return jittered
    return error.retry_after_s + min(jittered, 0.1 * error.retry_after_s + backoff.first_s * chance.random())
