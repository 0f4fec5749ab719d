"""Figures, tables and the page of `medthink report`.

The module can be called: `medthink.report(runs, "report.html")` is `write_report`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Unpack

    from medthink.report.page import ReportOptions
    from medthink.runs.run import RunOrPath


class ReportRoom(ModuleType):
    """This module, callable to write a report."""

    def __call__(self, runs: "Sequence[RunOrPath]", page: "str | Path", **options: "Unpack[ReportOptions]") -> "Path":
        from medthink.report.page import write_report

        return write_report(runs, page, **options)


sys.modules[__name__].__class__ = ReportRoom
