"""The page on statistics says what the code does."""

import doctest
from pathlib import Path

import medthink.stats as stats

PAGE = Path(__file__).parents[3] / "docs" / "statistics.md"


def test_the_examples_of_the_page_are_true():
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted >= 8
    assert result.failed == 0


def test_the_page_names_every_function_that_makes_a_result():
    page = PAGE.read_text(encoding="utf-8")
    makers = [
        *("rate_interval", "share_interval", "wilson", "bootstrap_mean", "mean_interval", "reciprocal"),
        *("repeated_mean", "holm", "needed_cases", "paired_power", "rank_runs", "rater_agreement"),
        *("minimum_detectable_difference", "ordered_agreement", "panel_agreement"),
        *("corrected_clustered_rate", "calibration", "paired_difference", "sign_flip_test", "mcnemar"),
    ]
    assert [name for name in makers if f"`{name}`" not in page or name not in stats.__all__] == []
