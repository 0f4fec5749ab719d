"""Sizes are compared by the rule that judges are given."""

import pytest

from medthink.judge.rubric import load_rubric
from medthink.metrics.findings import compare_findings
from medthink.metrics.findings.sizes import LIMITS_MM


@pytest.mark.parametrize(
    ("reference", "candidate", "conflicts"),
    [
        ("Nodule of 4 mm.", "Nodule of 5 mm.", []),
        ("Nodule of 4 mm.", "Nodule of 6 mm.", ["size"]),
        ("Nodule of 10 mm.", "Nodule of 12 mm.", []),
        ("Nodule of 1.0 cm.", "Nodule of 1.2 cm.", []),
        ("Nodule of 40 mm.", "Nodule of 49 mm.", ["size"]),
        ("Enlarged appendix of 7 mm.", "Enlarged appendix of 6 mm.", ["size"]),
        ("Enlarged lymph node of 11 mm.", "Enlarged lymph node of 10 mm.", ["size"]),
        ("Abdominal aortic aneurysm of 31 mm.", "Abdominal aortic aneurysm of 30 mm.", ["size"]),
    ],
)
def test_sizes_conflict_beyond_a_fifth_or_across_a_limit(reference, candidate, conflicts):
    assert [one.kind for one in compare_findings(reference, candidate).conflicts] == conflicts


def test_the_limits_are_those_of_the_rubric():
    page = load_rubric().page
    for words, name in (("outer diameter", "appendix"), ("aorta", "aorta"), ("short axis", "lymph_node")):
        (row,) = [line for line in page.splitlines() if words in line and line.startswith("|")]
        assert f"{LIMITS_MM[name]:g} mm" in row
