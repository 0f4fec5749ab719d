"""A build: the stages of a plan one after the other, each on the cases that passed the one before.

A stage with unchanged settings, input, rulings, prompts and version is not run again, unless some of its calls failed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from medthink.core.digest import digest_file, digest_value
from medthink.core.errors import Declined, MedThinkError
from medthink.curate.decision import read_decisions
from medthink.curate.engine import StageProgress, run_stage
from medthink.curate.plan import CurationPlan
from medthink.curate.registry import stage_type
from medthink.curate.review import Rulings, StageErrors, write_review
from medthink.curate.stage import Stage, StageContext, StageSettings
from medthink.curate.work import StageSummary, WorkFolder

# Called with the stage's name when it begins; returns what is called for every case.
Watch = Callable[[str], StageProgress]


class BuildEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a build ended: its stages, cases waiting for a person, the results of people's checks, what stopped it."""

    work: Path
    stages: tuple[StageSummary, ...]
    waiting: int
    errors: tuple[StageErrors, ...]
    stopped_by: MedThinkError | None

    @property
    def unfinished(self) -> int:
        """How many cases are open because a call failed or was not made."""
        return sum(one.counts.unfinished for one in self.stages)


def build(plan: CurationPlan, watch: Watch | None = None) -> BuildEnd:
    """Carry out a plan, or continue where it stopped."""
    work = WorkFolder(plan.work)
    rulings = Rulings.read(work.review)
    before, done = work.read_summaries(), dict[str, StageSummary]()
    source: Path | None = None
    stopped_by: MedThinkError | None = None
    for name, settings in plan.stages.items():
        stage = open_stage(name, settings, work=work, source=source, plan_folder=plan.folder, seed=plan.seed)
        summary, stopped_by = carry_out(stage, work, rulings, before.get(name), watch)
        done[name] = summary
        work.write_summaries(done)
        source = work.case_file(name)
        if stopped_by is None and summary.counts.passed == 0:
            stopped_by = Declined(f"no case is left after {name}", remedy=f"see {work.decision_file(name)}")
        if stopped_by is not None:
            break
    logs = {name: read_decisions(work.decision_file(name)) for name in done if done[name].counts.seen}
    waiting = write_review(work.review, logs, sample=plan.review_sample, seed=plan.seed, rulings=rulings)
    return BuildEnd(
        work=plan.work,
        stages=tuple(done.values()),
        waiting=waiting,
        errors=tuple(rulings.errors()),
        stopped_by=stopped_by,
    )


def open_stage(
    name: str, settings: StageSettings, *, work: WorkFolder, source: Path | None, plan_folder: Path, seed: int
) -> Stage[Any]:
    """A stage ready to run in a work folder."""
    context = StageContext(work=work.path, folder=work.cases, plan_folder=plan_folder, seed=seed, source=source)
    return stage_type(name)(settings, context)


def carry_out(
    stage: Stage[Any], work: WorkFolder, rulings: Rulings, before: StageSummary | None, watch: Watch | None
) -> tuple[StageSummary, MedThinkError | None]:
    """Run a stage, unless it was already run on the same input and nothing is unfinished."""
    key = _key(stage, rulings)
    is_done = before is not None and not before.counts.unfinished and not before.stopped_by
    if before is not None and is_done and before.key == key and _is_whole(stage.name, work):
        return before, None
    end = run_stage(stage, work, rulings, watch(stage.name) if watch else None)
    summary = StageSummary(
        stage=stage.name,
        key=key,
        settings=msgspec.to_builtins(stage.settings),
        counts=end.counts,
        not_covered=stage.not_covered(),
        report=stage.report(),
        stopped_by="" if end.stopped_by is None else end.stopped_by.problem,
    )
    return summary, end.stopped_by


def _is_whole(name: str, work: WorkFolder) -> bool:
    return work.case_file(name).is_file() and work.decision_file(name).is_file()


def _key(stage: Stage[Any], rulings: Rulings) -> str:
    source = stage.context.source
    return digest_value(
        {
            "stage": [stage.name, stage.version],
            "settings": msgspec.to_builtins(stage.settings),
            "seed": stage.context.seed,
            "source": None if source is None else digest_file(source),
            "rulings": rulings.of_stage(stage.name),
            "inputs": stage.inputs(),
            "prompts": stage.prompts(),
        }
    )
