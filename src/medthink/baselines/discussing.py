"""A discussion in six sections, put together from that of the most similar case and the present findings."""

from medthink.cases.case import Case, Question
from medthink.models.request import Reply
from medthink.workflow.outcome import Sections
from medthink.workflow.parsing import parse_sections
from medthink.workflow.schemas import SECTIONS

_UNKNOWN = "Nothing similar in the train split."


def discuss(diagnosis: str, findings: str, question: Question, alike: Case | None) -> dict[str, str]:
    """The six sections for this diagnosis, by name."""
    known = _sections_of(alike)
    present = {
        "background": f"{diagnosis} is the diagnosis considered here.",
        "clinical_perspective": question.history or "No history was given.",
        "imaging_perspective": findings,
        "clinical_significance": "",
        "outcome": f"The most likely diagnosis is {diagnosis}.",
        "teaching_points": "",
    }
    return {name: " ".join(filter(None, (present[name], known[name]))) for name in SECTIONS}


def _sections_of(case: Case | None) -> dict[str, str]:
    """The sections of the case's own discussion; one without headings is all background."""
    sections = dict.fromkeys(SECTIONS, _UNKNOWN)
    if case is None or not case.reference.discussion.strip():
        return sections
    parsed = parse_sections(Reply(text=case.reference.discussion))
    if isinstance(parsed, Sections):
        return sections | {name: text for name, text in parsed.texts.items() if text.strip()}
    return sections | {"background": case.reference.discussion.strip()}
