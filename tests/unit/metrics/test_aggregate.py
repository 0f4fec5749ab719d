"""Means that keep count of what they leave out."""

from medthink.metrics.answers import Mean, mean_of_known


def test_mean_counts_unknowns() -> None:
    assert mean_of_known([1.0, None, 0.0]) == Mean(0.5, 2, 1)
    assert mean_of_known([None]) == Mean(None, 0, 1)
    assert mean_of_known([]) == Mean(None, 0, 0)
