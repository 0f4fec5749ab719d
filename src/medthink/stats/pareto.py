"""Which of several choices no other beats on cost and value together."""

from collections.abc import Sequence


def pareto_set(costs: Sequence[float], values: Sequence[float]) -> list[int]:
    """The places of the choices that no other beats on one without losing on the other, cheapest first.

    Two choices that are equal in both are in it together. Uncertainty is not looked at: beside a set drawn from
    estimates, show their intervals.
    """
    order = sorted(range(len(costs)), key=lambda i: (costs[i], -values[i]))
    found: list[int] = []
    for i in order:
        last = found[-1] if found else None
        if last is None or values[i] > values[last] or (values[i], costs[i]) == (values[last], costs[last]):
            found.append(i)
    return found
