"""RadCliQ of many pairs: a value if all four components are known, else the reason.

Policies, printed with the result: idf off; an empty candidate has all components 0 and is counted; an empty reference
is left out and counted; texts truncated at the models' limit are counted; means are over pairs. The composites were
fitted on chest radiographs: elsewhere the absolute value is out of domain.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from medthink.metrics.answers import mean_of_known
from medthink.metrics.radcliq.composite import Advance, Component, Components, ignore_progress, radcliq_v0, radcliq_v1

PairState = Literal["ok", "empty_candidate", "empty_reference"]
Fingerprint = dict[str, dict[str, str]]
"""By component, what its values depend on: weights by digest, packages by version, options."""
TellProgress = Callable[[str, int, int], None]
"""Called with a component, the number of texts it has to encode, and how many more are done."""
NOTHING_WRITTEN = Components(0.0, 0.0, 0.0, 0.0)
"""The components of an empty candidate."""
FIELDS = ("radgraph", "bertscore", "semb", "bleu2")
POLICY = (
    "idf off; empty candidate: all components 0; empty reference: left out; mean over pairs; lower is better; "
    "fitted on chest radiographs"
)


class RadCliQRow(msgspec.Struct, frozen=True):
    """One pair."""

    state: PairState
    components: Components | None
    v0: float | None
    v1: float | None


class RadCliQ(msgspec.Struct, frozen=True):
    """All pairs, or the reason why there are none."""

    status: str
    rows: list[RadCliQRow]
    v0: float | None
    v1: float | None
    states: dict[PairState, int]
    truncated: int
    fingerprint: Fingerprint
    policy: str = POLICY

    @property
    def is_computed(self) -> bool:
        """Whether there is a value."""
        return self.status == "ok"

    @property
    def inverse_v1(self) -> float | None:
        """1 / mean v1, as ReXrank prints it; None at or below its pole."""
        return 1 / self.v1 if self.v1 is not None and self.v1 > 0 else None


def score_radcliq(
    references: Sequence[str],
    candidates: Sequence[str],
    components: Sequence[Component],
    progress: TellProgress | None = None,
) -> RadCliQ:
    """RadCliQ of every pair, from components computed here."""
    by_name = {component.name: component for component in components}
    lacking = {name: by_name[name].unavailable() if name in by_name else "no provider given" for name in FIELDS}
    reasons = [f"{name}: {reason}" for name, reason in lacking.items() if reason]
    if reasons:
        return _not_computed(reasons)
    states = [_state(ref, cand) for ref, cand in zip(references, candidates, strict=True)]
    whole = [place for place, state in enumerate(states) if state == "ok"]
    texts = [references[place] for place in whole], [candidates[place] for place in whole]
    total = len({*texts[0], *texts[1]})
    scores = {name: by_name[name].score(*texts, _telling(progress, name, total)) for name in FIELDS}
    values: dict[int, Components] = {
        place: Components(**{name: scores[name].values[i] for name in FIELDS}) for i, place in enumerate(whole)
    }
    truncated = {place for score in scores.values() for place in score.truncated}
    return _assemble(states, values, len(truncated), {name: by_name[name].fingerprint() for name in FIELDS})


def score_components(components: Sequence[Components | None], *, source: str) -> RadCliQ:
    """RadCliQ from components computed elsewhere; `source` says where, and is the fingerprint."""
    values = {place: entry for place, entry in enumerate(components) if entry is not None}
    lacking = [place for place in range(len(components)) if place not in values]
    if lacking:
        return _not_computed([f"components of pair {lacking[0] + 1} are not in {source}"])
    return _assemble(["ok"] * len(components), values, 0, {"precomputed": {"source": source}})


def join_radcliq(parts: Sequence[RadCliQ]) -> RadCliQ:
    """RadCliQ of pairs that were scored in portions; none where one was not, or was scored with something else."""
    failed = next((part for part in parts if not part.is_computed), None)
    if failed is not None:
        return failed
    if not parts:
        return _assemble([], {}, 0, {})
    for name, made_with in parts[0].fingerprint.items():
        if any(part.fingerprint.get(name) != made_with for part in parts):
            return _not_computed([f"{name}: the workers have different weights or packages"])
    rows = [row for part in parts for row in part.rows]
    values = {place: row.components for place, row in enumerate(rows) if row.components is not None}
    truncated = sum(part.truncated for part in parts)
    return _assemble([row.state for row in rows], values, truncated, parts[0].fingerprint)


def _telling(progress: TellProgress | None, name: str, total: int) -> Advance:
    return partial(progress, name, total) if progress else ignore_progress


def _state(reference: str, candidate: str) -> PairState:
    if not reference.strip():
        return "empty_reference"
    return "ok" if candidate.strip() else "empty_candidate"


def _not_computed(reasons: Sequence[str]) -> RadCliQ:
    states: dict[PairState, int] = {}
    return RadCliQ(f"not computed: {'; '.join(reasons)}", [], None, None, states, 0, {})


def _assemble(
    states: Sequence[PairState],
    values: Mapping[int, Components],
    truncated: int,
    fingerprint: Fingerprint,
) -> RadCliQ:
    rows = [_row(state, values.get(place)) for place, state in enumerate(states)]
    return RadCliQ(
        status="ok",
        rows=rows,
        v0=mean_of_known(row.v0 for row in rows).value,
        v1=mean_of_known(row.v1 for row in rows).value,
        states={state: states.count(state) for state in ("ok", "empty_candidate", "empty_reference")},
        truncated=truncated,
        fingerprint=fingerprint,
    )


def _row(state: PairState, components: Components | None) -> RadCliQRow:
    if state == "empty_reference":
        return RadCliQRow(state, None, None, None)
    known = NOTHING_WRITTEN if state == "empty_candidate" else components
    assert known is not None
    return RadCliQRow(state, known, radcliq_v0(known), radcliq_v1(known))
