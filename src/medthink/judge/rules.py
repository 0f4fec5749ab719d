"""`baseline/rules`: an embedded judge that compares findings and option names with the reference.

It is a deterministic, offline smoke test of the whole path. It understands almost nothing, and no run is ranked by it.
The rules of each kind of judging are in the module of that kind.
"""

from typing import Any

import msgspec

from medthink.judge.edits.twins import reword_text
from medthink.judge.judgement import RULES
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import REWORD, JudgePrompt
from medthink.models.errors import ModelError
from medthink.models.request import AttemptLog, Reply, Request, Usage
from medthink.runs.answerers import Free


class RulesJudge(Free):
    """The embedded judge, asked in the same way as a model."""

    spec = RULES

    async def answer(self, prompt: JudgePrompt, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Judge by rule."""
        form: dict[str, Any] = {"call": prompt.call} | _fill_in(prompt)
        content = msgspec.to_builtins(form)
        return Reply(text=msgspec.json.encode(content).decode(), json=content, usage=Usage(), model=RULES)

    async def close(self) -> None:
        """Nothing is held open."""


def _fill_in(prompt: JudgePrompt) -> dict[str, Any]:
    if prompt.kind == REWORD and prompt.source is not None:
        return {"text": reword_text(prompt.source.parts["text"])}
    if prompt.units is None or prompt.source is None:
        raise ModelError("unsupported", f"{RULES} does not cut texts into steps", remedy="use the sentence splitter")
    return KINDS[prompt.units.what].judge_by_rule(prompt.units, prompt.evidence, prompt.source)
