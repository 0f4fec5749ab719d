"""How many sections of the reference a discussion covers."""

import pytest

from medthink.metrics.registry import section_coverage

FULL = "\n".join(
    f"{title}\nText."
    for title in (
        "Background", "Clinical Perspective", "Imaging Perspective", "Clinical Significance", "Outcome", "Key Points",
    )
)  # fmt: skip


def test_coverage() -> None:
    assert section_coverage([FULL, FULL, "none"], [FULL, "Outcome\nGood.", FULL]) == [1.0, pytest.approx(1 / 6), None]
