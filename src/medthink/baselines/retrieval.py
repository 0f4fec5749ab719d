"""The retrieval baseline: it describes an image with the captions of similar ones, and scores options by those words.

It uses nothing but images, findings and options. Without an image or a finding it has no evidence, and says so.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from medthink.baselines.album import Album
from medthink.baselines.baseline import Pick, remember_nothing, reply, steps
from medthink.baselines.casebook import Casebook, Weighing
from medthink.baselines.guessing import best, say_probabilities
from medthink.baselines.learning import Lessons
from medthink.baselines.passages import sections_of
from medthink.baselines.rules import random_letter
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Image, Question
from medthink.core.digest import seed_from
from medthink.models.request import Reply
from medthink.workflow.ask import Prompt, PromptKind

_NAME = "retrieval"
_NOTHING_SEEN = "No image was shown."
_UNKNOWN = "The train split has nothing on this."


class Memory(msgspec.Struct, frozen=True):
    """What was learned from the train split: images with their captions, and texts by diagnosis."""

    album: Album
    casebook: Casebook


class RetrievalReader:
    """Answers from the most similar images and texts of the train split."""

    name = _NAME

    def __init__(self, lessons: Lessons[Memory]) -> None:
        self._lessons = lessons

    def answer(self, prompt: Prompt, *, sample: int) -> Reply:
        """Answer any kind of prompt."""
        return reply(self.name, self._content(prompt, sample))

    def refuse(self, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """It answers any kind of prompt, with options or without."""

    def _content(self, prompt: Prompt, sample: int) -> dict[str, Any]:
        question = prompt.question
        match prompt.kind:
            case "findings":
                return {"findings": self._describe([prompt.image or question.images[0]], question)[0]}
            case "summary":
                return {"summary": sum_up(prompt.findings or self._describe(question.images, question))}
            case "twi":
                findings = self._describe(question.images, question)
                pick = self._pick(findings, question, sample)
                return steps(list(findings), sum_up(findings), pick.explanation, pick.letter)
            case "discussion":
                return self._discuss(self._evidence(prompt), question, sample)
        if (nothing := remember_nothing(prompt)) is not None:
            return nothing
        pick = self._pick(self._evidence(prompt), question, sample)
        return {"explanation": pick.explanation, "answer": pick.letter}

    def _evidence(self, prompt: Prompt) -> tuple[str, ...]:
        """Findings or a summary from an earlier step or an expert, else the baseline's own descriptions."""
        if prompt.findings:
            return prompt.findings
        return (prompt.summary,) if prompt.summary else self._describe(prompt.question.images, prompt.question)

    def _describe(self, images: Sequence[Image], question: Question) -> tuple[str, ...]:
        return tuple(self._lessons.recall(question).album.caption(image) for image in images)

    def _pick(self, evidence: tuple[str, ...], question: Question, sample: int) -> Pick:
        """The option (or, where none are shown, the diagnosis) that the evidence supports most."""
        if not evidence:
            return self._pick_blindly(question, sample)
        casebook = self._lessons.recall(question).casebook
        options = question.options or {name: name for name in casebook.diagnoses}
        weighing = casebook.weigh(evidence, options)
        return Pick(best(weighing.probabilities), _explain(weighing, options))

    def _pick_blindly(self, question: Question, sample: int) -> Pick:
        if question.options:
            return Pick(random_letter(question, sample), f"{_NOTHING_SEEN} Without evidence, drawn at random.")
        diagnoses = self._lessons.recall(question).casebook.diagnoses
        name = diagnoses[seed_from("random diagnosis", sample, question.history) % len(diagnoses)]
        return Pick(name, f"{_NOTHING_SEEN} Without evidence, drawn at random from the train split.")

    def _discuss(self, evidence: tuple[str, ...], question: Question, sample: int) -> dict[str, Any]:
        pick = self._pick(evidence, question, sample)
        diagnosis = question.options.get(pick.letter, pick.letter)
        alike = self._lessons.recall(question).casebook.most_alike(evidence, diagnosis)
        return dict(_write_sections(diagnosis, sum_up(evidence), question, alike))


def retrieval_baseline(benchmark: Benchmark) -> RetrievalReader:
    """The baseline over this benchmark's train split."""
    return RetrievalReader(Lessons(benchmark, _NAME, lambda cases: Memory(Album(cases), Casebook(cases))))


def sum_up(findings: Sequence[str]) -> str:
    """The findings as one text, each said once."""
    if not findings:
        return _NOTHING_SEEN
    distinct = dict.fromkeys(finding.strip() for finding in findings)
    return " ".join(finding if finding.endswith((".", "!", "?")) else f"{finding}." for finding in distinct)


def _explain(weighing: Weighing, options: dict[str, str]) -> str:
    """The terms for the option chosen and against the next four."""
    ranked = sorted(weighing.probabilities, key=lambda letter: -weighing.probabilities[letter])
    chosen, others = ranked[0], ranked[1:5]
    lines = [f"{options[chosen]}: {_say_terms('the findings fit', weighing.speaking_for[chosen])}."]
    lines += [
        f"Not {options[other]}: {_say_terms('it does not fit', weighing.speaking_against[other])}." for other in others
    ]
    shown = {letter: weighing.probabilities[letter] for letter in ranked[:5]}
    return " ".join([*lines, f"Probabilities: {say_probabilities(shown)}."])


def _say_terms(verb: str, terms: list[str]) -> str:
    return f"{verb} ({', '.join(terms)})" if terms else "no term of the findings decides"


def _write_sections(diagnosis: str, findings: str, question: Question, alike: Case | None) -> dict[str, str]:
    """The six sections for this diagnosis, by name; `alike` is the case whose text is reused."""
    present = {
        "clinical_perspective": question.history or "No history was given.",
        "imaging_perspective": findings,
        "outcome": f"The most likely diagnosis is {diagnosis}.",
    }
    known = _known_sections(alike)
    return {name: " ".join(filter(None, (present.get(name), known[name]))) or _UNKNOWN for name in known}


def _known_sections(case: Case | None) -> dict[str, str]:
    """The sections of the case's own discussion; one without headings is all background."""
    discussion = "" if case is None else case.reference.discussion.strip()
    sections = sections_of(discussion)
    return sections if any(sections.values()) else sections | {"background": discussion}
