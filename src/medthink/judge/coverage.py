"""How much of what could be judged was judged; below 99 %, a score is marked incomplete."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from medthink.judge.judgement import Judgement
from medthink.judge.units import UnitKey, UnitSet
from medthink.stats import Measured, rate_interval

COMPLETE_SHARE = 0.99

Units = Mapping[UnitKey, UnitSet]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what could be judged was: `due` counts the judgements expected, `missing` those never asked for."""

    due: int
    judged: int
    unjudged: dict[str, int]
    missing: int
    absent: int
    fallback_splits: int
    share: Measured
    is_complete: bool


def measure_coverage(rows: Sequence[Judgement], units: Units) -> Coverage:
    """How many of the expected judgements reached a verdict."""
    what = rows[0].what
    repeats = max(row.repeat for row in rows) + 1
    sets = [one for one in units.values() if one.what == what]
    states = Counter(row.state for row in rows)
    # A prediction that could not be cut has no unit set, but still has its row.
    due = max(sum(one.state != "absent" for one in sets) * repeats, states["ok"] + states["unjudged"])
    hits = [1] * states["ok"] + [0] * (due - states["ok"])
    return Coverage(
        due=due,
        judged=states["ok"],
        unjudged=dict(sorted(Counter(str(row.why) for row in rows if row.state == "unjudged").items())),
        missing=due - states["ok"] - states["unjudged"],
        absent=states["absent"],
        fallback_splits=sum(one.is_fallback for one in sets),
        share=rate_interval(hits),
        is_complete=due > 0 and states["ok"] / due >= COMPLETE_SHARE,
    )
