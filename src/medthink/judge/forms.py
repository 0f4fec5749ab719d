"""What a judge's reply must contain beyond its form: exactly one verdict for every unit, each with its grounds."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from medthink.judge.verdicts import UnitVerdict
from medthink.workflow.forms import Fault

Given = TypeVar("Given", bound=UnitVerdict)


def match_ids(verdicts: Iterable[Given], ids: Sequence[str]) -> tuple[Given, ...] | Fault:
    """The verdicts in the order of the units; each unit needs exactly one."""
    by_id: dict[str, Given] = {}
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        by_id[verdict.id] = verdict
        counts[verdict.id] += 1
    missing = [one for one in ids if one not in counts]
    twice = [one for one in ids if counts[one] > 1]
    strange = len(counts.keys() - set(ids))
    problems = [f"no verdict for {', '.join(missing)}"] if missing else []
    problems += [f"more than one verdict for {', '.join(twice)}"] if twice else []
    problems += [f"{strange} verdicts for ids that were not given"] if strange else []
    return Fault("wrong_ids", "; ".join(problems)) if problems else tuple(by_id[one] for one in ids)


def check_grounds(verdict: UnitVerdict, rests_on: Sequence[str], allowed: Sequence[str]) -> Fault | None:
    """Why a verdict's reason or grounds are not acceptable; None if they are."""
    if not verdict.reason.strip():
        return Fault("wrong_form", f"{verdict.id} has no reason")
    if not rests_on or set(rests_on) - set(allowed):
        return Fault("wrong_form", f'{verdict.id} must rest on one or more of the names given for "rests_on"')
    return None
