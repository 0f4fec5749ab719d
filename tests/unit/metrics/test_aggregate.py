"""Means that keep count of what they leave out."""

from medthink.metrics.aggregate import Mean, mean_by_group, mean_of


def test_mean_counts_unknowns() -> None:
    assert mean_of([1.0, None, 0.0]) == Mean(0.5, 2, 1)
    assert mean_of([None]) == Mean(None, 0, 1)
    assert mean_of([]) == Mean(None, 0, 0)


def test_images_to_cases_to_benchmark() -> None:
    values, cases = [1.0, 1.0, 1.0, 0.0, None], ["a", "a", "a", "b", "c"]
    assert mean_by_group(values, cases) == {"a": Mean(1.0, 3, 0), "b": Mean(0.0, 1, 0), "c": Mean(None, 0, 1)}
