"""Judging of reasoning steps, discussions and findings, which the right letter does not show; one kind of judging each.

The module can be called: `medthink.judge(run, judges)` is `judge_and_score`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from medthink.judge.judged import JudgedScores
    from medthink.judge.session import JudgeOptions
    from medthink.models.transport import Transport
    from medthink.runs.run import RunOrPath


class JudgeRoom(ModuleType):
    """This module, callable to judge a run."""

    def __call__(
        self,
        run: "RunOrPath",
        judges: "str | Sequence[str]",
        *,
        transport: "Transport | None" = None,
        **options: "Unpack[JudgeOptions]",
    ) -> "JudgedScores":
        from medthink.judge.session import judge_and_score

        return judge_and_score(run, judges, transport=transport, **options)


sys.modules[__name__].__class__ = JudgeRoom
