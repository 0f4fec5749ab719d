"""The RadCliQ composites, from their published parameters as plain numbers.

Both are linear in four standardised components and LOWER IS BETTER; v0 is about the number of errors a radiologist
would count. They were fitted on 200 (v0) and 160 (v1) pairs of chest radiograph reports. In v0 a higher BLEU makes the
score worse; in v1 its weight is nil. Identical texts score -0.242 (v0) and -1.441 (v1); texts with nothing in common
score 5.516 and 2.450. Source: rajpurkarlab/CXR-Report-Metric 1.1.0 (MIT).
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata, util
from typing import Protocol

import msgspec

from medthink.metrics.rouge import bleu2


class Components(msgspec.Struct, frozen=True):
    """The four components of one pair."""

    radgraph: float
    bertscore: float
    semb: float
    bleu2: float


class _Fit(msgspec.Struct, frozen=True):
    """Per component, in the order of `Components`: mean, scale and coefficient; then the intercept."""

    mean: tuple[float, float, float, float]
    scale: tuple[float, float, float, float]
    coefficient: tuple[float, float, float, float]
    intercept: float


_V0 = _Fit(
    mean=(0.5398376019082272, 0.6312549595000001, 0.7716797866672277, 0.4607372064809605),
    scale=(0.3018344440559102, 0.22466950746141123, 0.24750333805236252, 0.30336670936092264),
    coefficient=(-0.4796252644863446, -0.6762170542369337, -0.46366575161751994, 0.2165861905287535),
    intercept=1.641666666666666,
)
_V1 = _Fit(
    mean=(0.5379231241355762, 0.6175725628125001, 0.7647942121140658, 0.44738335396242174),
    scale=(0.3028258411486429, 0.22430938459304575, 0.2539439110169773, 0.2989271671041838),
    coefficient=(-0.37708368261038905, -0.37030009974480316, -0.25261621789593225, 4.315048405024756e-12),
    intercept=2.466552561323256e-10,
)


def radcliq_v0(components: Components) -> float:
    """RadCliQ-v0 of one pair; lower is better."""
    return _combine(_V0, components)


def radcliq_v1(components: Components) -> float:
    """RadCliQ-v1 of one pair; lower is better."""
    return _combine(_V1, components)


def _combine(fit: _Fit, components: Components) -> float:
    values = (components.radgraph, components.bertscore, components.semb, components.bleu2)
    terms = zip(values, fit.mean, fit.scale, fit.coefficient, strict=True)
    return math.fsum(((value - mean) / scale * weight for value, mean, scale, weight in terms)) + fit.intercept


Advance = Callable[[int], None]
"""Called with the number of further texts done."""

# Memory for one padded token of a base-size encoder: its activations and its share of the attention.
_BYTES_A_TOKEN = 128 * 1024
_SHARE_OF_MEMORY = 0.25
_FEWEST_TOKENS = 1_024
# Beyond this a larger batch is no faster on a CPU.
_MOST_TOKENS = 8_192


def token_budget() -> int:
    """The number of padded tokens that can be encoded at once with the free memory."""
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


def ignore_progress(done: int) -> None:
    """Ignore progress."""


MAX_TOKENS = 512


class ComponentScores(msgspec.Struct, frozen=True):
    """One value per pair, and the pairs with a text truncated at the model's limit."""

    values: list[float]
    truncated: list[int]


class Component(Protocol):
    """One component of RadCliQ."""

    @property
    def name(self) -> str:
        """The field of `Components` it fills."""

    def unavailable(self) -> str | None:
        """The reason why it cannot be computed here; None if it can."""

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        """The value of every pair; texts are not empty, and `advance` is called as texts are done."""

    def fingerprint(self) -> dict[str, str]:
        """Everything that the values depend on: weights by digest, packages by version, options."""


class Bleu2:
    """BLEU-2 as a component; it needs no weights."""

    name = "bleu2"

    def unavailable(self) -> str | None:
        """Always available."""
        return None

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        """BLEU-2 of every pair."""
        advance(len({*references, *candidates}))
        return ComponentScores([bleu2(r, c) for r, c in zip(references, candidates, strict=True)], [])

    def fingerprint(self) -> dict[str, str]:
        """Its definition only."""
        return {"definition": "sentence BLEU-2, smoothing 1"}


def missing_packages(*names: str) -> str | None:
    """Why these packages cannot be used; None if all are installed."""
    missing = [name for name in names if util.find_spec(name) is None]
    return f"{', '.join(missing)} not installed (pip install 'medthink[radcliq]')" if missing else None


def package_versions(*names: str) -> dict[str, str]:
    """The installed version of each package."""
    return {f"package:{name}": metadata.version(name) for name in names}
