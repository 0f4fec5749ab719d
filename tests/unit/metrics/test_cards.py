"""Every registered metric has a card that says what the registry says."""

import json
import math
import re
from pathlib import Path

import pytest

from medthink.judge.kinds import KINDS
from medthink.metrics.registry import METRICS, Metric

CARDS = Path(__file__).parents[3] / "docs" / "metrics"


def bound(value: float) -> str:
    return ("-inf" if value < 0 else "inf") if math.isinf(value) else f"{value:g}"


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_card_agrees_with_the_registry(metric: Metric) -> None:
    card = (CARDS / f"{metric.card}.md").read_text(encoding="utf-8")
    row = f"| `{metric.name}` | {metric.version} | {metric.direction} | {bound(metric.low)} to {bound(metric.high)} |"
    assert row in card
    for part in (
        ("Definition.", "Limits.", "Command.") if metric.card != "findings" else ("Definition.", "Known limits")
    ):
        assert part in card


def test_no_card_without_a_metric_or_a_kind_of_judging() -> None:
    cards = {path.stem for path in CARDS.glob("*.md")}
    assert cards - set(KINDS) == {metric.card for metric in METRICS.values()} - set(KINDS)


def test_known_limits_of_findings_are_on_the_card() -> None:
    card = (CARDS / "findings.md").read_text(encoding="utf-8")
    limits = (Path(__file__).parent / "finding_limits.jsonl").read_text(encoding="utf-8").splitlines()
    for line in limits:
        words = json.loads(line)["limit"].split(":")[0].split()[:3]
        assert re.search(r"\s+".join(map(re.escape, words)), card), words


@pytest.mark.parametrize("path", sorted(CARDS.glob("*.md")), ids=lambda path: path.stem)
def test_named_tests_and_benches_exist(path: Path) -> None:
    for name in re.findall(r"(?:tests|bench)/[\w/]+\.(?:py|jsonl)", path.read_text(encoding="utf-8")):
        assert (CARDS.parents[1] / name).exists(), name
