"""Every number has one form, wherever it is shown."""

import re
from pathlib import Path

import pytest

import medthink
from medthink.core.numbers import (
    as_count,
    as_decimal,
    as_percent,
    as_points,
    as_points_and_ends,
    as_rate,
    as_usd,
    as_value_with_interval,
)
from medthink.stats.estimate import Estimate, mean_cell


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unknown"), (0.0, "$0.00"), (0.1, "$0.10"), (12.3, "$12.30"), (1234.5, "$1,234.50"),
        (0.0999, "$0.10"), (0.05, "$0.05"), (0.0421, "$0.042"), (0.0042, "$0.0042"), (0.00001, "$0.00001"),
    ],
)  # fmt: skip
def test_money(usd, text):
    assert as_usd(usd) == text


def test_rates_values_and_counts():
    assert as_percent(0.3414) == "34.1 %" and as_percent(0.5, 0) == "50 %"
    assert as_rate(0.572, 0.536, 0.608) == "57.2 % (53.6–60.8)"
    assert as_rate(-0.05, -0.13, 0.476) == "−5.0 % (−13.0 to 47.6)"
    assert (as_points(0.027), as_points(-0.08)) == ("+2.7", "−8.0")
    assert as_value_with_interval(0.143, 0.139, 0.147) == "0.143 (0.139–0.147)"
    assert as_value_with_interval(0.01, -0.02, 0.04) == "0.010 (−0.020 to 0.040)"
    assert (as_count(12345.4), as_count(None)) == ("12,345", "–")


def test_nothing_is_written_as_minus_zero():
    assert as_percent(-0.0001) == "0.0 %" and as_percent(-0.05) == "−5.0 %"
    assert as_rate(-0.0001, -0.0004, 0.232) == "0.0 % (0.0–23.2)"
    assert as_value_with_interval(-0.0001, -0.0002, 0.3) == "0.000 (0.000–0.300)"
    assert as_decimal(-0.001, 2) == "0.00" and as_points(-0.0001) == "+0.0"
    assert mean_cell(Estimate(value=0, low=-0.001, high=0.2, level=0.95, n=9, clusters=9, method=""), 2) == (
        "0.00 (0.00–0.20)"
    )


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((-0.027, 0.08), "−2.7 to +8.0"), ((0.0004, 0.08), "+0.04 to +8.00"), ((-0.08, -0.00003), "−8.000 to −0.003"),
        ((0.0, 0.08), "+0.0 to +8.0"), ((-0.0001, 0.08), "+0.0 to +8.0"),
    ],
)  # fmt: skip
def test_an_end_that_decides_is_never_written_as_0(ends, told):
    assert as_points_and_ends(sum(ends) / 2, *ends)[1] == told


def test_money_is_written_nowhere_else():
    root = Path(medthink.__file__).parent
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path.name != "numbers.py" and re.search(r'f"[^"]*\$\{[^}"]*:', path.read_text(encoding="utf-8"))
    ]
    assert found == []
