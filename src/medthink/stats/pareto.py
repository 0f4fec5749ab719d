"""The choices that no other beats on both cost and value."""

from collections.abc import Sequence


def pareto_set(costs: Sequence[float], values: Sequence[float]) -> list[int]:
    """The indices of the choices that no other beats on one without losing on the other, cheapest first.

    Choices equal in both are all included. Uncertainty is ignored: show the intervals next to a set made from
    estimates.
    """
    order = sorted(range(len(costs)), key=lambda i: (costs[i], -values[i]))
    found: list[int] = []
    for i in order:
        last = found[-1] if found else None
        if last is None or values[i] > values[last] or (values[i], costs[i]) == (values[last], costs[last]):
            found.append(i)
    return found
