"""Running an exam: judges are asked for whatever is still missing, through a ledger, and their answers are graded."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from medthink.cases.benchmark import Benchmark, HeldSplit, hold_split
from medthink.cases.case import Case
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.files import claim_folder
from medthink.core.jsonio import read_stored, read_stored_rows, write_json, write_jsonl
from medthink.judge.asking import (
    JUDGE_LEDGER,
    AskingSettings,
    Judge,
    Judges,
    JudgesResult,
    ask_verdicts,
    blank_judgement,
    find_stop,
    open_judges,
)
from medthink.judge.exam.grading import digest_sheets, grade_exam
from medthink.judge.exam.make import ExamPlan, discussed_cases, make_exam, pair_sheets
from medthink.judge.exam.results import (
    RESULTS_FILE,
    ExamResult,
    ExamText,
    form_of,
    keep_results,
    read_sheets,
    sheets_due,
    write_sheets,
)
from medthink.judge.judged import merge_judgements, read_judgements, write_judgements
from medthink.judge.judgement import Judgement, Unjudged, gather_evidence
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import prompt_version, reword_prompt
from medthink.judge.units import UnitSource
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.calls.rehearsal import CallEstimate, Rehearsal, open_rehearsal
from medthink.runs.engine import run_cases, run_to_end
from medthink.runs.progress import ProgressTracker, RunListener
from medthink.workflow.condition import Condition
from medthink.workflow.forms import ReplyFault, ReplyForm, read_form
from medthink.workflow.view import show_under_condition as show_question

if TYPE_CHECKING:
    from medthink.models.transport import Transport

REWORDINGS_FILE = "rewordings.jsonl"
# Sheets of rewordings are numbered from here, above those of any exam.
_FIRST_NUMBER = 1_000_000
_KEPT = re.compile(r"\d+(?:\.\d+)?|\b(?:left|right)\b", re.IGNORECASE)
_LENGTHS = (0.5, 2.0)


class Rewording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A discussion in the words of a judge."""

    author: str
    case: int
    text: str


class RewordForm(ReplyForm, frozen=True):
    """The text of a reply."""

    text: str


async def reword_case(hearing: Judge, case: Case) -> Rewording | Unjudged:
    """Ask a judge to write a case's discussion in its own words."""
    text = case.reference.discussion.strip()
    source = UnitSource(run="exam", case=case.id, sample=0, what="reword", parts={"text": text})
    prompt = reword_prompt(source)

    def read(reply: str) -> str | ReplyFault:
        form = read_form(reply, RewordForm, prompt.call)
        return form if isinstance(form, ReplyFault) else _check(form.text.strip(), text)

    heard = await hearing.hear(prompt, read, case_id=case.id, repeat=0)
    if isinstance(heard.result, Unjudged):
        return heard.result
    return Rewording(author=hearing.desk.answerer.spec, case=case.id, text=heard.result)


def _check(text: str, original: str) -> str | ReplyFault:
    """The text, or why its content differs: numbers and sides must be kept, and the length must be similar."""
    if not _LENGTHS[0] <= len(text) / len(original) <= _LENGTHS[1]:
        return ReplyFault("wrong_form", "the text must be about as long as the one given")
    if _count(text) != _count(original):
        return ReplyFault("wrong_form", "every number and side of the text must be kept, and none added")
    return text


def _count(text: str) -> Counter[str]:
    return Counter(found.lower() for found in _KEPT.findall(text))


def own_sheets(rewordings: Iterable[Rewording], cases: dict[int, Case]) -> Iterator[ExamText]:
    """Each rewording paired with the expert's text, in both orders."""
    for one in rewordings:
        start = _FIRST_NUMBER + 2 * int(digest_value([one.author, one.case])[:7], 16)
        text = cases[one.case].reference.discussion.strip()
        yield from pair_sheets(count(start), one.case, text, one.text, contender=one.author)


def read_rewordings(exam: Path) -> dict[tuple[str, int], Rewording]:
    """The rewordings of every judge that took the exam, by judge and case."""
    remedy = "delete the row to have it made again"
    found = read_stored_rows(exam / REWORDINGS_FILE, Rewording, name="a rewording", remedy=remedy)
    return {(one.author, one.case): one for one in found}


def write_rewordings(exam: Path, rewordings: dict[tuple[str, int], Rewording]) -> None:
    """Write the rewordings, by judge and case."""
    if rewordings:
        write_jsonl(exam / REWORDINGS_FILE, (msgspec.to_builtins(rewordings[key]) for key in sorted(rewordings)))


EXAM_FILE = "exam.json"
DEFAULT_KINDS = ("steps", "omissions", "preference")


class ExamManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The manifest of an exam: its benchmark, plan and seed."""

    benchmark: str
    split: str
    fingerprint: str
    items: int
    seed: int

    @property
    def plan(self) -> ExamPlan:
        """The number of exam texts, and the seed that selects them."""
        return ExamPlan(items=self.items, seed=self.seed)


class ExamSpec(AskingSettings, frozen=True, kw_only=True):
    """The parameters of a session.

    Without a `benchmark`, the exam already in `out` is used; a different `plan` is refused.
    """

    out: Path
    benchmark: Path | None = None
    split: str = "test"
    plan: ExamPlan | None = None
    what: tuple[str, ...] = DEFAULT_KINDS


class ExamSession(JudgesResult, frozen=True, kw_only=True):
    """How a session ended: the exam, the results of its judges, and the judgements that failed."""

    results: tuple[ExamResult, ...]
    manifest: ExamManifest
    failed: tuple[Judgement, ...] = ()


def run_exam(
    order: ExamSpec, *, transport: "Transport | None" = None, listener: RunListener | None = None
) -> ExamSession:
    """Examine the judges, or continue where an earlier session stopped; nothing is asked twice."""
    return run_to_end(_Sitting(order, transport, listener).work())


def rehearse_exam(order: ExamSpec, *, transport: "Transport | None" = None) -> CallEstimate:
    """Count the calls that the session would make, and estimate their cost; nothing is sent, and no key is needed."""
    with open_rehearsal(order.out, JUDGE_LEDGER) as rehearsal:
        run_to_end(_Sitting(order, transport, None, rehearsal).work())
        return rehearsal.tally.total


def open_exam(
    out: Path, benchmark: Path | None = None, *, split: str = "test", plan: ExamPlan | None = None
) -> tuple[ExamManifest, tuple[ExamText, ...], dict[int, Case]]:
    """The exam in a folder, with its cases; if there is none yet, it is made from the benchmark."""
    if (out / EXAM_FILE).exists():
        return _open_made(out, benchmark, plan)
    if benchmark is None:
        raise UsageError(f"{out} contains no exam yet", remedy="name the benchmark: medthink exam DATA --judge SPEC")
    return _make(out, benchmark, split, plan or ExamPlan())


def _open_made(
    out: Path, benchmark: Path | None, plan: ExamPlan | None
) -> tuple[ExamManifest, tuple[ExamText, ...], dict[int, Case]]:
    manifest = read_stored(
        out / EXAM_FILE, ExamManifest, name="an exam", remedy=f"check that {out} is the right folder"
    )
    if plan is not None and plan != manifest.plan:
        raise UsageError(
            f"{out} contains an exam of {manifest.items} items per edit, made with seed {manifest.seed}",
            remedy="leave --count and --seed out, or name another folder with --out",
        )
    place = benchmark or Path(manifest.benchmark)
    if not place.exists() and benchmark is None:
        raise UsageError(f"the exam's benchmark is no longer at {place}", remedy="give its path with --data")
    held = _hold_split(place, manifest.split)
    if held.text_fingerprint != manifest.fingerprint:
        raise UsageError(f"{out} contains an exam made from another benchmark", remedy="name another folder with --out")
    sheets = read_sheets(out)
    wanted = {sheet.case for sheet in sheets}
    return manifest, sheets, {number: case for number, case in held.cases.items() if number in wanted}


def _make(
    out: Path, benchmark: Path, split: str, plan: ExamPlan
) -> tuple[ExamManifest, tuple[ExamText, ...], dict[int, Case]]:
    held = _hold_split(benchmark, split)
    sheets = make_exam(held.cases.values(), plan)
    manifest = ExamManifest(
        benchmark=str(benchmark.resolve()),
        split=split,
        fingerprint=held.text_fingerprint,
        items=plan.items,
        seed=plan.seed,
    )
    claim_folder(out, EXAM_FILE)
    write_sheets(out, sheets)
    # Written last: a folder that has it holds a complete exam.
    write_json(out / EXAM_FILE, msgspec.to_builtins(manifest))
    return manifest, sheets, {number: held.cases[number] for number in {sheet.case for sheet in sheets}}


def _hold_split(place: Path, split: str) -> HeldSplit:
    opened = Benchmark.open(place)
    return hold_split(opened[split] if len(opened.splits) > 1 or split in opened.splits else opened)


class _Sitting:
    """The state of one session while it works."""

    def __init__(
        self,
        order: ExamSpec,
        transport: "Transport | None",
        listener: RunListener | None,
        rehearsal: Rehearsal | None = None,
    ) -> None:
        self._order = order
        self._rehearsal = rehearsal
        # Where it writes; an exam that was made before is read from its folder.
        self._out = order.out if rehearsal is None else rehearsal.folder
        self._transport = transport
        self._tracker = ProgressTracker(listener)
        self._tracker.counts.unit = "judgements"
        _refuse_unknown(order.what)
        self._manifest, self._sheets, self._cases = self._open()
        self._made: list[Judgement] = []

    def _open(self) -> tuple[ExamManifest, tuple[ExamText, ...], dict[int, Case]]:
        order = self._order
        is_new = not (order.out / EXAM_FILE).exists() and order.benchmark is not None
        if is_new and self._rehearsal is not None and order.out.exists():
            claim_folder(order.out, EXAM_FILE)
        place = self._out / "exam" if is_new and self._rehearsal is not None else order.out
        return open_exam(place, order.benchmark, split=order.split, plan=order.plan)

    async def work(self) -> ExamSession:
        """Run the session under the folder's lock."""
        order = self._order
        bench = open_judges(
            self._out,
            order,
            specs=order.judges,
            tracker=self._tracker,
            transport=self._transport,
            rehearsal=self._rehearsal,
        )
        async with bench as opened:
            return await opened.work(self._sit_all)

    async def _sit_all(self, bench: Judges) -> ExamSession:
        self._made.clear()
        self._tracker.begin_pass()
        rewordings, short = await self._reword(bench)
        sheets = (*self._sheets, *own_sheets(rewordings.values(), self._cases))
        self._tell_totals(sheets)
        ends = await asyncio.gather(
            *(self._sit(hearing, sheets, bench) for hearing in bench.hearings.values()), return_exceptions=True
        )
        return self._finish(bench, sheets, [short, *ends])

    def _finish(
        self, bench: Judges, sheets: Sequence[ExamText], ends: Sequence[BudgetReached | BaseException | None]
    ) -> ExamSession:
        out = self._out
        judgements = merge_judgements(read_judgements(self._order.out), self._made)
        write_judgements(out, judgements)
        # Results from an earlier wording of a prompt are kept, but not mixed with these.
        current = [one for one in judgements if one.prompt == prompt_version(one.what)]
        results = grade_exam(sheets, current, exam=digest_sheets(self._sheets), benchmark=self._manifest.fingerprint)
        keep_results(out / RESULTS_FILE, results)
        stopped_by = find_stop(ends)
        own = [
            one
            for one in results
            if one.judge in self._order.judges and one.setting == self._order.setting_of(one.judge)
        ]
        return ExamSession(
            results=tuple(own),
            manifest=self._manifest,
            calls_made=bench.calls.made,
            stopped_by=stopped_by,
            failed=tuple(one for one in self._made if one.why == "failed"),
            warnings=tuple(self._tracker.counts.warnings),
        )

    async def _reword(self, bench: Judges) -> tuple[dict[tuple[str, int], Rewording], BudgetReached | None]:
        """Every judge's rewordings of some of the discussions; those of earlier judges are kept."""
        kept = read_rewordings(self._order.out)
        if not any(KINDS[what].is_pairwise for what in self._order.what):
            return kept, None
        work = [
            (hearing, case)
            for spec, hearing in bench.hearings.items()
            for case in discussed_cases(self._sheets)
            if (spec, case) not in kept
        ]

        async def handle(one: tuple[Judge, int]) -> None:
            made = await reword_case(one[0], self._cases[one[1]])
            if isinstance(made, Rewording):
                kept[made.author, made.case] = made

        places = max(hearing.desk.answerer.concurrency for hearing in bench.hearings.values())
        stop = await run_cases(work, handle, workers=places)
        write_rewordings(self._out, kept)
        return kept, stop

    def _tell_totals(self, sheets: Sequence[ExamText]) -> None:
        counts = self._tracker.counts
        counts.predictions = len(list(self._work(sheets))) * len(self._order.judges)
        counts.calls = counts.finished + counts.predictions

    def _work(self, sheets: Sequence[ExamText]) -> Iterable[tuple[ExamText, str, int]]:
        """Every sheet for every kind it suits."""
        return ((sheet, what, time) for what in self._order.what for sheet, time in sheets_due(sheets, what))

    async def _sit(self, hearing: Judge, sheets: Sequence[ExamText], bench: Judges) -> BudgetReached | None:
        async def judge(work: tuple[ExamText, str, int]) -> None:
            judgement = await self._judge(hearing, *work, bench)
            self._made.append(judgement)
            self._tracker.counts.states[judgement.state] += 1

        return await run_cases(self._work(sheets), judge, workers=hearing.desk.answerer.concurrency)

    async def _judge(self, hearing: Judge, sheet: ExamText, what: str, repeat: int, bench: Judges) -> Judgement:
        source = sheet.source(what)
        case = self._cases[sheet.case]
        blank = blank_judgement(source.key, hearing.desk.answerer.spec, self._order, repeat=repeat)
        evidence = gather_evidence(case, show_question(Condition(), case.question), blank.setting.sees)
        units = sheet.units(source)
        return await ask_verdicts(hearing, blank, units, evidence=evidence, source=source, ledger=bench.calls.ledger)


def _refuse_unknown(whats: Sequence[str]) -> None:
    unknown = [what for what in whats if what not in KINDS or form_of(what) is None]
    if unknown or not whats:
        known = [what for what in KINDS if form_of(what) is not None]
        raise UsageError(f"there is no exam for {', '.join(unknown) or 'nothing'}", remedy=f"known: {', '.join(known)}")
