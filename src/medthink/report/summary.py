"""The summary in words: the runs, the results, what can and cannot be distinguished, and the cost."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from medthink.audit.runs import RunAudit
from medthink.core.numbers import as_percent, as_usd, count_of
from medthink.report.figures.accuracy import chance
from medthink.report.runs import ComparableGroup, answer_pairs
from medthink.scoring.compare import detectable_difference, find_samples
from medthink.scoring.inputs import SUBMISSION
from medthink.scoring.scores import difference_text, rate_text
from medthink.scoring.tables import samples_note
from medthink.stats.estimate import Undefined, rank_range

_MOST_NAMES = 4


def summarise_group(group: ComparableGroup, audits: Mapping[str, RunAudit] | None = None) -> list[str]:
    """The group in a few sentences; `audits` by label give the results of guessing."""
    sentences = [_what_was_run(group), _headline(group, audits or {}), _told_apart(group), _resolution(group)]
    return [sentence for sentence in (*sentences, _samples(group), _states(group), _cost(group)) if sentence]


def name_some(names: Sequence[str]) -> str:
    """The first few names, and the number of others."""
    if len(names) > _MOST_NAMES + 1:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _what_was_run(group: ComparableGroup) -> str:
    models = sorted({entry.manifest.model for entry in group.entries})
    files = sum(entry.manifest.task == SUBMISSION for entry in group.entries)
    tasks = sorted({entry.manifest.task for entry in group.entries} - {SUBMISSION})
    parts = [f"{'task' if len(tasks) == 1 else 'tasks'} {name_some(tasks)}"] if tasks else []
    parts += [count_of(files, "submission file")] if files else []
    cue = " Expert text was shown to the model." if group.kind == "expert-cued" else ""
    partial = " Partial: the others may be harder or easier." if group.partial else ""
    return (
        f"{count_of(len(group.entries), 'run')} of {count_of(len(models), 'model')} ({name_some(models)}), "
        f"{', '.join(parts)}, {'all ' if len(group.entries) > 1 else ''}on "
        f"{'the same ' if len(group.entries) > 1 else ''}{group.cases_text}.{partial}{cue}"
    )


def _headline(group: ComparableGroup, audits: Mapping[str, RunAudit]) -> str:
    scored = list(answer_pairs(group.entries))
    if not scored:
        return "No run answered by letter, so there is no accuracy."
    entry, answers = scored[0]
    lead = "Accuracy" if len(scored) == 1 else f"The highest accuracy is that of {entry.label}"
    verb = " is " if len(scored) == 1 else ": "
    right = f"{lead}{verb}{rate_text(answers.accuracy)} of {count_of(answers.n_predictions, 'prediction')}"
    audit = audits.get(entry.label)
    if audit is None:
        return f"{right}; guessing by chance gets {as_percent(chance(group), 0)}."
    caveat = (
        "" if audit.has_own_blind else "; no image-free run of that model was given, so the rivals are guessers only"
    )
    return (
        f"{right}. Its strongest rival, {audit.strongest_rival}, gets "
        f"{as_percent(audit.strongest_accuracy.value or 0.0)}: "
        f"a gain of {difference_text(audit.diagnostic_gain)}{caveat}."
    )


def _told_apart(group: ComparableGroup) -> str:
    ranked = list(group.ranked())
    if not ranked:
        return ""
    best = ranked[0][1]
    if best.worst == 1:
        return "Every other run is shown to be worse (95 %): it has rank 1."
    leaders = [entry.label for entry, place in ranked[1:] if place.is_leader]
    if len(leaders) + 1 == len(ranked) == best.worst:
        return f"These cases do not distinguish the {len(ranked)} runs: no rank is certain."
    lead = f"It shares the lead with {name_some(leaders)}: no run is shown to be better than these. " if leaders else ""
    return f"{lead}Its rank lies within {rank_range(best.rank, best.worst)} of {len(ranked)}."


def _resolution(group: ComparableGroup) -> str:
    """The difference these cases can show between two runs that disagree as the leader and the others do."""
    if group.ranking is None:
        return ""
    leader, *others = (np.array([one.right for one in entry.scores.cases]) for entry in group.lettered)
    middle = sorted(others, key=lambda other: float(np.mean((leader - other) ** 2)))[len(others) // 2]
    found = detectable_difference(leader, middle, threshold=group.ranking.power_z)
    cases = count_of(group.n_cases, "case")
    if isinstance(found, Undefined):
        return (
            f"{cases} are too few to show any difference between runs like these." if (leader != middle).any() else ""
        )
    apart = as_percent(float(np.mean(leader != middle)), 0)
    return (
        f"With {cases}, two runs that disagree on {apart} of them must differ "
        f"by about {found.difference * 100:.1f} points to be distinguished with 80 % power."
    )


def _samples(group: ComparableGroup) -> str:
    """The runs that might as well be samples of one run."""
    labels = {entry.scores.origin.name: entry.label for entry in group.lettered}
    found = find_samples([entry.scores for entry in group.lettered])
    return samples_note([replace(one, runs=tuple(labels[run] for run in one.runs)) for one in found])


def _states(group: ComparableGroup) -> str:
    totals: Counter[str] = Counter()
    for _, answers in answer_pairs(group.entries):
        totals.update(answers.states)
    missing = {state: count for state, count in totals.items() if state != "ok" and count}
    if not totals:
        return ""
    if not missing:
        return f"All {sum(totals.values()):,} predictions have a letter."
    parts = name_some([f"{count:,} {state}" for state, count in missing.items()])
    return (
        f"{sum(missing.values()):,} of {sum(totals.values()):,} predictions have no letter ({parts}): they count as "
        "wrong, and the table shows them."
    )


def _cost(group: ComparableGroup) -> str:
    known = [usage.cost_usd for entry in group.entries if (usage := entry.scores.usage)]
    complete = [total.value for total in known if total.value is not None]
    calls = sum(entry.scores.usage.calls for entry in group.entries if entry.scores.usage)
    unknown = len(group.entries) - len(complete)
    spent = sum(complete)
    if unknown == len(group.entries):
        return f"{count_of(calls, 'call')}; the cost is unknown."
    rest = f"; the cost of {count_of(unknown, 'run')} is unknown" if unknown else ""
    is_least = any(entry.scores.usage and entry.scores.usage.uncounted_replies for entry in group.entries)
    return f"{count_of(calls, 'call')} for {as_usd(spent, is_least=is_least)}{rest}."
