"""Training examples from the train split: the prompts of a task, and the expert's reply or the key of a reward.

Cases of other splits, and train cases that nearly repeat one of them, are refused. A case without a text needed for the
reply, or without an image, is left out. Refused and skipped cases are listed, with reasons, next to the examples.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from medthink.bridges.targets import TargetOptions, TargetProgress, TrainingTask, WrittenTarget
from medthink.bridges.trainers import TRAINERS, TrainingExample
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.check.image_files import FilledSlot, ImageFileCheck, check_image_files, slots_of
from medthink.cases.check.texts import SimilarTextFinder, normalised_words
from medthink.cases.files.export import decoding_problem
from medthink.cases.images.similarity import look_alikes
from medthink.cases.sections import SECTIONS, split_discussion
from medthink.core.errors import Declined, UsageError
from medthink.core.files import new_folder
from medthink.core.jsonio import encode_json
from medthink.core.numbers import as_percent
from medthink.scoring.reward import reward_key
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.prompts import load_prompts
from medthink.workflow.view import Cues


def find_held_out(
    train: Benchmark, others: Sequence[Benchmark], against: Sequence[Benchmark], progress: TargetProgress
) -> dict[int, str]:
    """The train cases to refuse, with reasons; `others` are splits of the benchmark, `against` other benchmarks."""
    refused = dict(_same_number(train, others))
    for found in (_same_text(train, [*others, *against]), _same_picture(train, [*others, *against], progress)):
        for number, reason in found:
            refused.setdefault(number, reason)
    return refused


def _same_number(train: Benchmark, others: Sequence[Benchmark]) -> Iterator[tuple[int, str]]:
    numbers = {case.id: case.split for other in others for case in other}
    for case in train:
        if case.id in numbers:
            yield case.id, f"it is in {numbers[case.id]} too"


def _same_text(train: Benchmark, others: Sequence[Benchmark]) -> Iterator[tuple[int, str]]:
    histories, cases = SimilarTextFinder(), list[tuple[str, int]]()
    # The held-out ones first: each later text is matched with its nearest predecessor from the other side.
    for side, benchmarks in (("held out", others), ("train", [train])):
        for benchmark in benchmarks:
            for case in benchmark:
                histories.add(side, normalised_words(case.question.history))
                cases.append((case.split, case.id))
    for match in histories.matches():
        split, number = cases[match.first]
        same = as_percent(match.similarity, 0)
        yield cases[match.second][1], f"its history is {same} the same as {split} case {number}"


def _same_picture(train: Benchmark, others: Sequence[Benchmark], progress: TargetProgress) -> Iterator[tuple[int, str]]:
    benchmarks = [*others, train] if others else []
    slots = [[slot for case in benchmark for slot in slots_of(case)] for benchmark in benchmarks]
    total, looked = sum(map(len, slots)), list[tuple[bool, FilledSlot, ImageFileCheck]]()
    for benchmark, wanted in zip(benchmarks, slots, strict=True):
        for slot, seen in check_image_files(wanted, benchmark.images):
            progress("images", total)
            looked.append((benchmark is train, slot, seen))
    yield from _same_pixels(looked)
    yield from _same_look(looked)


def _same_pixels(looked: Sequence[tuple[bool, FilledSlot, ImageFileCheck]]) -> Iterator[tuple[int, str]]:
    held_out = {seen.digest: slot for is_train, slot, seen in looked if not is_train and seen.digest is not None}
    for is_train, slot, seen in looked:
        if is_train and seen.digest in held_out:
            other = held_out[seen.digest]
            yield slot.case, f"image {slot.slot} is image {other.slot} of {other.split} case {other.case}"


def _same_look(looked: Sequence[tuple[bool, FilledSlot, ImageFileCheck]]) -> Iterator[tuple[int, str]]:
    shown = [(is_train, slot, seen.appearance) for is_train, slot, seen in looked if seen.appearance is not None]
    for first, second in look_alikes([look for *_, look in shown]):
        (is_other_train, other, _), (is_train, slot, _) = shown[first], shown[second]
        # Train comes last, so that the train image is the second of a pair.
        if is_train and not is_other_train:
            yield slot.case, f"image {slot.slot} looks like image {other.slot} of {other.split} case {other.case}"


TRAIN = "train"
Purpose = Literal["sft", "rl"]
_NO_IMAGE = "an image is missing or cannot be read"
_NAMED = 5


class SkippedCase(msgspec.Struct, frozen=True):
    """A train case without an example, and the reason."""

    case: int
    reason: str
    is_refused: bool = False


def write_sft(benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress) -> WrittenTarget:
    """Write prompts with the expert's replies."""
    return _write("sft", benchmark, out, options, progress)


def write_rl(benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress) -> WrittenTarget:
    """Write prompts with the keys that `medthink.reward` uses."""
    return _write("rl", benchmark, out, options, progress)


def _write(
    purpose: Purpose, benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress
) -> WrittenTarget:
    trainer = TRAINERS[options.trainer]
    if purpose not in trainer.purposes:
        able = ", ".join(name for name, one in TRAINERS.items() if purpose in one.purposes)
        raise UsageError(f"{options.trainer} does not support {purpose}", remedy=f"choose --trainer from: {able}")
    if purpose == "rl" and options.task == "discussion":
        raise UsageError("there is no reward for discussions", remedy="use --task answer or twi")
    train = benchmark.split(TRAIN)
    others = [benchmark.split(name) for name in benchmark.splits if name != TRAIN]
    against = [Benchmark.open(path) for path in options.held_out]
    refused = find_held_out(train, others, against, progress)
    maker = _Maker(purpose, options.task, refused)
    with new_folder(out) as folder:
        trainer.write(maker.examples(train, progress), folder, purpose)
        if not maker.written:
            raise Declined(
                "no example could be made from any case",
                remedy="; ".join(maker.reasons()) or "the train split is empty",
            )
        (folder / "README.md").write_text(_readme(purpose, options, maker), encoding="utf-8")
    lines = [f"{maker.written:,} examples → {out}", *maker.reasons()]
    return WrittenTarget(
        lines=tuple(lines), warnings=_warnings(bool(others or against)), lacking=_lacking(maker.left_out)
    )


def _lacking(left_out: list[SkippedCase]) -> str:
    """Cases that should be examples but are not: a text may be missing by design, an image may not."""
    cases = [one.case for one in left_out if one.reason == _NO_IMAGE]
    named = ", ".join(map(str, cases[:_NAMED])) + (" …" if len(cases) > _NAMED else "")
    return f"cases left out because {_NO_IMAGE}: {named}" if cases else ""


class _Maker:
    """Makes the examples one by one, and counts the cases without one."""

    def __init__(self, purpose: Purpose, task: TrainingTask, refused: dict[int, str]) -> None:
        self._purpose = purpose
        self._task = task
        self._refused = refused
        self.left_out: list[SkippedCase] = []
        self.written = 0

    def examples(self, train: Benchmark, progress: TargetProgress) -> Iterator[TrainingExample]:
        """Every case that may and can be an example."""
        total = len(train)
        for case in train:
            progress("cases", total)
            made = self._make(case)
            if isinstance(made, SkippedCase):
                self.left_out.append(made)
            else:
                self.written += 1
                yield made

    def reasons(self) -> list[str]:
        """The numbers of refused and skipped cases, with reasons."""
        counts = Counter(one.reason for one in self.left_out if not one.is_refused)
        lines = [f"{count:,} left out: {reason}" for reason, count in counts.most_common()]
        refused = [one for one in self.left_out if one.is_refused]
        if refused:
            lines.append(f"{len(refused):,} refused, because they repeat a held-out case: README.md lists them")
        return lines

    def _make(self, case: Case) -> TrainingExample | SkippedCase:
        if case.id in self._refused:
            return SkippedCase(case.id, self._refused[case.id], is_refused=True)
        problem = _case_problem(case)
        if problem:
            return SkippedCase(case.id, problem)
        prompt = _prompt(case, self._task)
        if self._purpose == "rl":
            assert self._task != "discussion"
            return TrainingExample(case=case.id, task=self._task, prompt=prompt, key=reward_key(case, self._task))
        reply = expert_reply(case, self._task)
        if isinstance(reply, SkippedCase):
            return reply
        return TrainingExample(case=case.id, task=self._task, prompt=prompt, reply=encode_json(reply).decode())


def expert_reply(case: Case, task: TrainingTask) -> dict[str, object] | SkippedCase:
    """The reply made from the expert's texts, in the form the prompt asks for."""
    reference = case.reference
    captions = [image.caption for image in reference.images]
    if task == "discussion":
        sections = split_discussion(reference.discussion).sections
        missing = [name for name in SECTIONS if name not in sections]
        return SkippedCase(case.id, "the discussion lacks a section") if missing else {n: sections[n] for n in SECTIONS}
    if not reference.discussion.strip():
        return SkippedCase(case.id, "no discussion, which is the expert's reasoning")
    if task == "answer":
        return {"explanation": reference.discussion, "answer": reference.answer}
    if not reference.findings.strip() or not all(caption.strip() for caption in captions):
        return SkippedCase(case.id, "no findings, or an image without a caption")
    return {
        "step1_per_image_findings": captions,
        "step2_integrated_summary": reference.findings,
        "step3_differential_reasoning": reference.discussion,
        "answer": reference.answer,
    }


def _prompt(case: Case, task: TrainingTask) -> Prompt:
    prompts = load_prompts(Condition().prompt_set)
    if task == "twi":
        return prompts.think_with_images(case.question)
    return (prompts.answer if task == "answer" else prompts.discussion)(case.question, Cues())


def _case_problem(case: Case) -> str:
    if case.reference.answer not in case.question.options:
        return "the answer is none of the options"
    return _NO_IMAGE if any(map(decoding_problem, case.question.images)) else ""


def _warnings(has_held_out: bool) -> tuple[str, ...]:
    if has_held_out:
        return ()
    return ("not checked for held-out cases: there is no other split; name the test benchmark with --held-out",)


def _readme(purpose: Purpose, options: TargetOptions, maker: _Maker) -> str:
    trainer = TRAINERS[options.trainer]
    refused = [f"| {one.case} | {one.reason} |" for one in maker.left_out if one.is_refused]
    table = ["", "Refused, because they repeat a held-out case:", "", "| case | why |", "|---|---|", *refused]
    head = [
        "---",
        "configs:",
        "- config_name: default",
        "  data_files:",
        "  - split: train",
        f"    path: {trainer.file}",
    ]
    body = [
        "---",
        "",
        f"# {maker.written:,} training examples ({purpose}, task `{options.task}`, for {options.trainer})",
        "",
        "For research and education only, under the licence of the cases. Never train on a test split.",
        "",
        trainer.how_to[purpose],
        *([""] + [f"- {line}" for line in maker.reasons()] if maker.left_out else []),
        *(table if refused else []),
    ]
    return "\n".join([*head, *body, ""])
