"""A discussion in six sections, put together from that of the most similar case and the present findings."""

from medthink.baselines.passages import sections_of
from medthink.cases.case import Case, Question

_UNKNOWN = "The train split has nothing on this."


def discuss(diagnosis: str, findings: str, question: Question, alike: Case | None) -> dict[str, str]:
    """The six sections for this diagnosis, by name; `alike` is the case whose words are used again."""
    present = {
        "clinical_perspective": question.history or "No history was given.",
        "imaging_perspective": findings,
        "outcome": f"The most likely diagnosis is {diagnosis}.",
    }
    known = _known(alike)
    return {name: " ".join(filter(None, (present.get(name), known[name]))) or _UNKNOWN for name in known}


def _known(case: Case | None) -> dict[str, str]:
    """The sections of the case's own discussion; one without headings is all background."""
    discussion = "" if case is None else case.reference.discussion.strip()
    sections = sections_of(discussion)
    return sections if any(sections.values()) else sections | {"background": discussion}
