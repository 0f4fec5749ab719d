"""Drafts and stages in one line, for the tests of `curate`."""

from pathlib import Path
from typing import Any

from medthink.core.jsonio import write_jsonl
from medthink.curate.build import StageRunResult, open_stage, run_stage
from medthink.curate.decision import Decision, read_decisions
from medthink.curate.draft import Draft, Notes, blank_draft, read_drafts
from medthink.curate.plan import WorkFolder
from medthink.curate.review import SHEET, answer_row, read_rulings, write_review
from medthink.curate.rulings import Answer
from medthink.curate.settings import read_stage_settings
from medthink.curate.stage import Stage


def draft(
    number: int = 1,
    *,
    history: str = "A patient with pain.",
    diagnosis: str = "Lipoma",
    differential: str | tuple[str, ...] = "",
    findings: str = "",
    discussion: str = "",
    options: dict[str, str] | None = None,
    **notes: Any,
) -> Draft:
    """A draft with these texts; with options, the diagnosis is the answer among them."""
    made = blank_draft(number, Notes(diagnosis=diagnosis, differential=differential, **notes))
    made = made.with_question(history=history, options=options or {})
    letters = [letter for letter, text in (options or {}).items() if text == diagnosis]
    return made.with_reference(
        findings=findings, discussion=discussion, answer_text=diagnosis, answer="".join(letters[:1])
    )


def write_drafts(path: Path, drafts: list[Draft]) -> Path:
    """A file of drafts."""
    write_jsonl(path, (one.row() for one in drafts))
    return path


class StageTrial:
    """What a stage made of some drafts: its end, its decisions and the drafts it let pass, by case."""

    def __init__(self, stage: Stage[Any], work: WorkFolder, end: StageRunResult) -> None:
        self.stage = stage
        self.work = work
        self.end = end

    @property
    def decisions(self) -> dict[int, Decision]:
        """The log, by case."""
        return {one.case: one for one in read_decisions(self.work.decision_file(self.stage.name))}

    @property
    def kept(self) -> dict[int, Draft]:
        """The drafts that passed, by case."""
        if not self.end.counts.passed:
            return {}
        return {one.id: one for one in read_drafts(self.work.case_file(self.stage.name))}


def try_stage(
    name: str, folder: Path, drafts: list[Draft] | Path | None, *, seed: int = 0, **settings: Any
) -> StageTrial:
    """Run a stage on drafts, or on a file of them, in a work folder; again in the same folder goes on there."""
    if name == "ingest":
        settings = {"needs_licence": False} | settings
    work = WorkFolder(folder / "work")
    source = write_drafts(work.cases / "given.jsonl", drafts) if isinstance(drafts, list) else drafts
    stage = open_stage(
        name, read_stage_settings(name, settings), work=work, source=source, plan_folder=folder, seed=seed
    )
    return StageTrial(stage, work, run_stage(stage, work, read_rulings(work.path)))


def rule(trial: StageTrial, *, case: int = 1, reason: str = "", ruling: str = "in", value: str = "") -> None:
    """Answer what the stage asks about a case, or this question about it, as a person does in the room."""
    write_review(trial.work.path, {trial.stage.name: iter(trial.decisions.values())}, sample=0, seed=0)
    decision = trial.decisions[case]
    assert decision.verdict == "undecided" and reason in ("", decision.reason), decision
    assert answer_row(trial.work.path, decision.question, Answer(ruling=ruling, value=value), who="cora")
    assert (trial.work.path / SHEET).is_file()
