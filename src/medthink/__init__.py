"""MedThink: multi-image diagnostic reasoning benchmarks, from the data to the leaderboard.

Names resolve on first use, so that `import medthink` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "Benchmark": "medthink.cases.benchmark",
    "Case": "medthink.cases.case",
    "Image": "medthink.cases.case",
    "Question": "medthink.cases.case",
    "Reference": "medthink.cases.case",
    "Condition": "medthink.workflow.condition",
    "Run": "medthink.runs.run",
    "run": "medthink.runs.session",
    "DataError": "medthink.core.errors",
    "MedThinkError": "medthink.core.errors",
    "UsageError": "medthink.core.errors",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'medthink' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
