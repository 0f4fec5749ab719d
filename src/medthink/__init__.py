"""MedThink: multi-image diagnostic reasoning benchmarks, from the data to the leaderboard.

Names resolve on first use, so that `import medthink` costs nothing; `__init__.pyi` has them for type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

_EXPORTS = {
    "Benchmark": "medthink.cases.benchmark",
    "Case": "medthink.cases.case",
    "Comparison": "medthink.scoring.compare",
    "Condition": "medthink.workflow.condition",
    "DataError": "medthink.core.errors",
    "Image": "medthink.cases.case",
    "MedThinkError": "medthink.core.errors",
    "ModelError": "medthink.models.request",
    "Question": "medthink.cases.case",
    "Reference": "medthink.cases.case",
    "Run": "medthink.api:RunWithScores",
    "Scores": "medthink.scoring.scores",
    "UsageError": "medthink.core.errors",
    "check": "medthink.api",
    "compare": "medthink.api",
    "default_condition": "medthink.workflow.tasks",
    "reward": "medthink.scoring.reward",
    "run": "medthink.api",
    "synth": "medthink.api",
}
# Callable modules: the module's name is also the function's name.
_ROOMS = {"judge": "medthink.judge.session:judge_and_score", "report": "medthink.report.page:write_report"}

__all__ = ["__version__", *_EXPORTS, *_ROOMS]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"medthink.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'medthink' has no attribute {name!r}")
    module, _, attribute = _EXPORTS[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
