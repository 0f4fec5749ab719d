"""Hashes of all five-word sequences of many texts, by a few passes over all their bytes at once."""

from typing import Any

GRAM = 5

_BASE = 0x9E3779B97F4A7C15
_BLOCK = 256
_SPACE, _END = ord(" "), ord("\n")


def hash_grams(texts: list[bytes], np: Any) -> tuple[Any, Any]:
    """The hash of every five-word sequence, and the number of its text; a shorter text is one sequence."""
    # In blocks that stay in the processor's cache: a third faster than all at once.
    starts = range(0, len(texts), _BLOCK)
    letters = [_letters(texts[start : start + _BLOCK], np) for start in starts]
    most = max(map(len, letters), default=0)
    powers, inverses = _powers(_BASE, most, np), _powers(pow(_BASE, -1, 1 << 64), most, np)
    blocks = [_hash_block(block, powers, inverses, np) for block in letters]
    grams = [gram for gram, _ in blocks]
    numbers = [text + start for (_, text), start in zip(blocks, starts, strict=True)]
    return np.concatenate([np.zeros(0, np.uint64), *grams]), np.concatenate([np.zeros(0, np.int64), *numbers])


def _hash_block(letters: Any, powers: Any, inverses: Any, np: Any) -> tuple[Any, Any]:
    """The sequences of some texts.

    Words are whatever stands between spaces; no word is a line end. The hash is a polynomial, modulo 2 to the 64, in
    the bytes of the words with one space after each: the difference of two running sums, moved to the origin.
    """
    sums = np.zeros(len(letters) + 1, dtype=np.uint64)
    np.multiply(powers[: len(letters)], letters, out=sums[1:])
    np.cumsum(sums, out=sums)
    starts = np.append(0, np.flatnonzero(letters == _SPACE) + 1)
    first, last, text = _sequences(letters[starts[:-1]] == _END, np)
    first, last = starts[first], starts[last]
    gram = (sums[last] - sums[first]) * inverses[first]
    return gram ^ gram >> np.uint64(29), text


def _letters(texts: list[bytes], np: Any) -> Any:
    """All texts as one, a line end after each as a word of its own, one space after every word."""
    letters = np.frombuffer(b"".join([b"%b \n " % text.lstrip() for text in texts]), dtype=np.uint8)
    is_space = letters == _SPACE
    is_space[1:] &= is_space[:-1]
    is_space[:1] = False
    return letters[~is_space]


def _sequences(is_end: Any, np: Any) -> tuple[Any, Any, Any]:
    """The first word of every sequence, the one after its last, and the number of its text."""
    ends = np.flatnonzero(is_end)
    words = np.diff(ends, prepend=-1) - 1
    text = np.repeat(np.arange(len(ends)), words)
    first = np.arange(len(text)) + text  # behind as many ends as there are texts before
    last = np.minimum(first + GRAM, ends[text])
    is_whole = (last - first == GRAM) | (first == (ends - words)[text])
    return first[is_whole], last[is_whole], text[is_whole]


def _powers(base: int, count: int, np: Any) -> Any:
    """1, the base, its square …"""
    return np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(max(count - 1, 0), base, np.uint64)]))[:count]
