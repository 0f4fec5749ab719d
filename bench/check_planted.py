"""Whether each fault planted in raw phantoms was noticed at its stage.

    python bench/check_planted.py RAW [WORK]

RAW is what `medthink data synth -o RAW --raw` wrote, WORK what `medthink curate build RAW/plan.toml` made of it.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

from medthink.curate.decision import Decision, read_decisions
from medthink.curate.plan import WorkFolder
from medthink.curate.settings import STAGES


def main() -> int:
    """Print one line for each kind of fault; 1 where one was missed."""
    raw = Path(sys.argv[1])
    work = WorkFolder(Path(sys.argv[2]) if len(sys.argv) > 2 else raw / "work")
    planted = json.loads((raw / "planted.json").read_text(encoding="utf-8"))
    caught, missed, gone = check(planted, work)
    for name, stage in dict.fromkeys((one["name"], one["stage"]) for one in planted):
        others = "".join(f"; {where}: {count}" for where, count in sorted(gone[name].items()))
        mark = "MISSED" if missed[name] else "caught"
        print(f"{stage:<9} {name:<36} {mark} {caught[name]} of {caught[name] + len(missed[name])}{others}")
        for one in missed[name]:
            said = "nothing" if one["found"] is None else f"{one['found'].verdict} {one['found'].reason}"
            print(f"          case {one['case']}: {said}")
    return int(any(missed.values()))


def check(planted, work):
    """How often each fault was caught, where it was not, and which cases left the flow earlier for another reason."""
    logs = {name: {one.case: one for one in read_decisions(work.decision_file(name))} for name in work.read_summaries()}
    caught, missed, gone = defaultdict(int), defaultdict(list), defaultdict(lambda: defaultdict(int))
    for one in planted:
        earlier = _left_before(one, logs)
        decision = logs[one["stage"]].get(one["case"])
        if earlier:
            gone[one["name"]][f"out earlier, at {earlier}"] += 1
        elif decision is not None and _fits(one, decision, logs):
            caught[one["name"]] += 1
        else:
            missed[one["name"]].append(one | {"found": decision})
    return caught, missed, gone


def _left_before(one, logs) -> str:
    """The stage before the one meant that the case did not pass."""
    for name in STAGES:
        if name == one["stage"]:
            return ""
        decision = logs[name].get(one["case"]) if name in logs else None
        if decision is not None and decision.verdict in ("out", "undecided"):
            return name
    return ""


def _fits(one, decision: Decision, logs) -> bool:
    if one["stage"] == "split":
        # A case that is there twice: both in one split, or the other of the two is gone.
        twin = logs["split"].get(one["case"] - 1)
        return twin is None or twin.verdict == "out" or twin.reason == decision.reason
    return decision.verdict == one["verdict"] and decision.reason == one["reason"]


if __name__ == "__main__":
    raise SystemExit(main())
