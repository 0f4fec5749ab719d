"""RadCliQ-v0 and v1: the composite, its four components, and the sources of their weights."""

from medthink.metrics.radcliq.composite import Component, Components, ComponentScores, radcliq_v0, radcliq_v1
from medthink.metrics.radcliq.score import RadCliQ, RadCliQRow, score_components, score_radcliq

__all__ = [
    "Component",
    "ComponentScores",
    "Components",
    "RadCliQ",
    "RadCliQRow",
    "radcliq_v0",
    "radcliq_v1",
    "score_components",
    "score_radcliq",
]
