"""RadCliQ of written steps: computed with available weights, read from a file, or not computed, with the reason."""

from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from medthink.core.files import cache_folder
from medthink.core.plugins import PortionRunner
from medthink.metrics.radcliq import Components, RadCliQ, score_components, score_radcliq
from medthink.metrics.radcliq.bertscore import BertScore
from medthink.metrics.radcliq.chexbert import CheXbert
from medthink.metrics.radcliq.composite import Bleu2, Component
from medthink.metrics.radcliq.precomputed import AnnotatedRadGraph, read_components
from medthink.metrics.radcliq.radgraph import RadGraph
from medthink.metrics.radcliq.score import FIELDS, NOTHING_WRITTEN, Fingerprint, TellProgress, join_radcliq
from medthink.metrics.radcliq.weights import WeightSource
from medthink.metrics.registry import Columns
from medthink.workflow.written_text import TextPair

NAMES = ("radcliq_v0", "radcliq_v1")
# Worth the way to another machine: some seconds of work.
_PORTION = 64


class RadCliQOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The source of RadCliQ: a folder of weights, permission to download, or files computed elsewhere.

    With `spread`, other machines compute it in portions; they must have the folder of weights too.
    """

    weights: Path | None = None
    download: bool = False
    components: Path | None = None
    annotations: Path | None = None
    progress: TellProgress | None = None
    spread: PortionRunner | None = None


class Computed(NamedTuple):
    """The composites and their components, one value per pair, and their provenance; or why there are none."""

    columns: Columns
    fingerprint: Fingerprint
    not_computed: str = ""


def compute_radcliq(pairs: list[TextPair], options: RadCliQOptions | None) -> Computed:
    """RadCliQ of the pairs, as far as the options allow."""
    if options is None:
        return Computed({}, {}, "not requested; --radcliq computes it")
    result = _score(pairs, options)
    if not result.is_computed:
        return Computed({}, {}, result.status.removeprefix("not computed: "))
    columns: Columns = {
        "radcliq_v0": [row.v0 for row in result.rows],
        "radcliq_v1": [row.v1 for row in result.rows],
    }
    for field in FIELDS:
        columns[f"radcliq.{field}"] = [getattr(row.components, field, None) for row in result.rows]
    return Computed(columns, result.fingerprint)


def _score(pairs: list[TextPair], options: RadCliQOptions) -> RadCliQ:
    if options.components is not None:
        known: dict[str, Components] = read_components(options.components)
        # Nothing was written to compute them from.
        found = [known.get(pair.id) if pair.state == "ok" else NOTHING_WRITTEN for pair in pairs]
        return score_components(found, source=options.components.name)
    if options.spread is None:
        return _score_here(pairs, options, feature_folder())
    return _score_elsewhere(pairs, options, options.spread)


def _score_elsewhere(pairs: list[TextPair], options: RadCliQOptions, spread: PortionRunner) -> RadCliQ:
    portions = [pairs[start : start + _PORTION] for start in range(0, len(pairs), _PORTION)]
    # Nothing is kept there: the cache may be one file that all machines would write at once.
    work = partial(_score_here, options=replace(options, progress=None, spread=None), features=None)
    parts = []
    for portion, part in zip(portions, spread(work, portions), strict=True):
        parts.append(part)
        if options.progress is not None:
            options.progress("all components", len(pairs), len(portion))
    return join_radcliq(parts)


def _score_here(pairs: list[TextPair], options: RadCliQOptions, features: Path | None) -> RadCliQ:
    graphs, *others = _components(options.weights, options.download, features)
    if options.annotations is not None:
        ids = {(pair.reference, pair.candidate): pair.id for pair in pairs}
        graphs = AnnotatedRadGraph(options.annotations, ids)
    texts = [pair.reference for pair in pairs], [pair.candidate for pair in pairs]
    return score_radcliq(*texts, [graphs, *others], options.progress)


@cache
def _components(weights: Path | None, download: bool, features: Path | None) -> tuple[Component, ...]:
    """The four components, their models loaded once for all runs of a command."""
    source = WeightSource(folder=weights, online=download)
    return RadGraph(source, source, features), BertScore(source, features), CheXbert(source, source, features), Bleu2()


def feature_folder() -> Path:
    """The folder that caches the features of references between runs; it may be deleted at any time."""
    return cache_folder() / "radcliq"
