"""MedThink: multi-image diagnostic reasoning benchmarks, from the data to the leaderboard.

Names resolve on first use, so that `import medthink` costs nothing.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

_EXPORTS = {
    "Benchmark": "medthink.cases.benchmark",
    "Case": "medthink.cases.case",
    "Condition": "medthink.workflow.condition",
    "DataError": "medthink.core.errors",
    "Image": "medthink.cases.case",
    "MedThinkError": "medthink.core.errors",
    "ModelError": "medthink.models.errors",
    "Question": "medthink.cases.case",
    "Reference": "medthink.cases.case",
    "Run": "medthink.runs.run",
    "UsageError": "medthink.core.errors",
    "default_condition": "medthink.workflow.tasks",
    "run": "medthink.runs.session",
}

__all__ = ["__version__", *_EXPORTS]

if TYPE_CHECKING:
    # The same names once more, for whoever checks types; tests/meta/test_surface.py keeps the two lists equal.
    from medthink.cases.benchmark import Benchmark as Benchmark
    from medthink.cases.case import Case as Case
    from medthink.cases.case import Image as Image
    from medthink.cases.case import Question as Question
    from medthink.cases.case import Reference as Reference
    from medthink.core.errors import DataError as DataError
    from medthink.core.errors import MedThinkError as MedThinkError
    from medthink.core.errors import UsageError as UsageError
    from medthink.models.errors import ModelError as ModelError
    from medthink.runs.run import Run as Run
    from medthink.runs.session import run as run
    from medthink.workflow.condition import Condition as Condition
    from medthink.workflow.tasks import default_condition as default_condition
else:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _EXPORTS:
            raise AttributeError(f"module 'medthink' has no attribute {name!r}")
        return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
