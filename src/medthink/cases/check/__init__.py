"""Checks of a benchmark that report every broken invariant at once.

`defects` is the table of what can be wrong, `one_case` looks at a case by itself, `files` at the files it names,
`texts` and `shortcuts` across cases, `pixels` inside the image files; `run` puts them together.
"""

from medthink.cases.check.defects import DEFECTS, Defect, Severity
from medthink.cases.check.report import CheckReport, DataProblem
from medthink.cases.check.run import CheckProgress, check_benchmark

__all__ = ["DEFECTS", "CheckProgress", "CheckReport", "DataProblem", "Defect", "Severity", "check_benchmark"]
