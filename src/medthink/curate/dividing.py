"""Groups of cases divided among splits so that each label has its share in each split (iterative stratification)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from medthink.core.digest import seed_from


class LabelledGroup(NamedTuple):
    """Cases that must stay together, and how often each label occurs among them."""

    name: int
    size: int
    labels: Counter[str]


def divide(groups: Sequence[LabelledGroup], shares: Mapping[str, float], seed: int) -> dict[int, str]:
    """A split for each group; the rarest label is distributed first, to whichever split lacks most of it."""
    total = sum(group.size for group in groups)
    lacking = {split: share * total for split, share in shares.items()}
    counts: Counter[str] = Counter()
    for group in groups:
        counts.update(group.labels)
    wanted = {split: {label: share * count for label, count in counts.items()} for split, share in shares.items()}
    waiting = {group.name: group for group in sorted(groups, key=lambda one: seed_from("split", seed, one.name))}
    by_label: dict[str, list[int]] = {}
    for group in waiting.values():
        for label in group.labels:
            by_label.setdefault(label, []).append(group.name)
    found: dict[int, str] = {}
    while waiting:
        label = min((one for one in counts if counts[one] > 0), key=lambda one: (counts[one], one), default="")
        # The largest groups first: they are the hardest to place.
        names = [name for name in by_label.get(label, waiting) if name in waiting]
        for name in sorted(names, key=lambda name: -waiting[name].size):
            group = waiting.pop(name)
            split = max(shares, key=lambda one: (wanted[one].get(label, 0.0), lacking[one]))
            found[name] = split
            lacking[split] -= group.size
            for other, count in group.labels.items():
                wanted[split][other] -= count
                counts[other] -= count
        counts.pop(label, None)
    return found
