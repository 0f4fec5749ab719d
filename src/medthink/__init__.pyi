# What `__init__.py` resolves on first use; tests/meta/test_types.py keeps the two equal.
from medthink.api import RunWithScores as Run
from medthink.api import check, compare, run, synth
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Image, Question, Reference
from medthink.core.errors import DataError, MedThinkError, UsageError
from medthink.judge.session import judge_and_score as judge
from medthink.models.request import ModelError
from medthink.report.page import write_report as report
from medthink.scoring.compare import Comparison
from medthink.scoring.reward import reward
from medthink.scoring.scores import Scores
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import default_condition

__all__ = [
    "Benchmark",
    "Case",
    "Comparison",
    "Condition",
    "DataError",
    "Image",
    "MedThinkError",
    "ModelError",
    "Question",
    "Reference",
    "Run",
    "Scores",
    "UsageError",
    "__version__",
    "check",
    "compare",
    "default_condition",
    "judge",
    "report",
    "reward",
    "run",
    "synth",
]

__version__: str
