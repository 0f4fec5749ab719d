"""Parsing of replies in a requested form: strict if they follow it, lenient if not."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from medthink.cases.sections import SECTIONS
from medthink.models.request import Reply
from medthink.workflow.ask import Choice, Mode, Sections, SingleReplySteps, StepText, Unparsed
from medthink.workflow.parsing.choice import parse_choice
from medthink.workflow.parsing.replies import drop_thinking, find_object, read_object, strip_code_fence

_REASONING = "step3_differential_reasoning"
_BULLETS = " \t#*_>0123456789.)-"
_HEADINGS = {name.replace("_", " "): name for name in SECTIONS} | {
    "take home message": "teaching_points",
    "take home messages": "teaching_points",
    "take home points": "teaching_points",
    "teaching point": "teaching_points",
}


def parse_answer(reply: Reply, options: dict[str, str]) -> Choice | Unparsed:
    """The option (or, without options, the diagnosis) that the reply commits to."""
    form = _strict_form(reply, ("explanation", "answer"))
    if form is not None:
        choice = _strict_choice(form["answer"], form["explanation"], options)
        if choice is not None:
            return choice
    text = drop_thinking(reply.text)
    return text if isinstance(text, Unparsed) else parse_choice(text, options)


def parse_text(reply: Reply, field: str) -> StepText | Unparsed:
    """The text of `field` in the reply; a reply in no form at all is used in full."""
    form = _strict_form(reply, (field,))
    if form is not None and isinstance(form[field], str):
        return _said(form[field], "strict")
    text = drop_thinking(reply.text)
    if isinstance(text, Unparsed):
        return text
    loose = find_object(text)
    if loose is not None:
        said = loose.get(field)
        return _said(said, "lenient") if isinstance(said, str) else Unparsed(f'a JSON object without "{field}"')
    if f'"{field}"' in text:
        return Unparsed("a broken JSON object")
    return _said(strip_code_fence(text), "lenient")


def parse_steps(reply: Reply, options: dict[str, str], images: int) -> SingleReplySteps | Unparsed:
    """The three steps of a single reply on so many images; if no answer can be read, all of it is Unparsed."""
    form = _strict_form(reply, ("step1_per_image_findings", "step2_integrated_summary", _REASONING, "answer"))
    mode: Mode = "lenient" if form is None else "strict"
    choice = _choose_step(reply, form, options)
    if isinstance(choice, Unparsed):
        return choice
    loose = form if form is not None else _loose_form(reply)
    findings = _per_image(loose.get("step1_per_image_findings"), images, mode)
    summary = _said(loose.get("step2_integrated_summary"), mode)
    problems = [
        f"step {number}: {said.reason}" for number, said in ((1, findings), (2, summary)) if isinstance(said, Unparsed)
    ]
    return SingleReplySteps(
        findings=None if isinstance(findings, Unparsed) else findings,
        summary=None if isinstance(summary, Unparsed) else summary,
        choice=choice,
        detail="; ".join(problems),
    )


def parse_sections(reply: Reply) -> Sections | Unparsed:
    """The six sections of a discussion: from JSON, or under their headings."""
    form = _strict_form(reply, SECTIONS)
    if form is not None:
        return _six(form, "strict")
    text = drop_thinking(reply.text)
    if isinstance(text, Unparsed):
        return text
    return _six(find_object(text) or _under_headings(text), "lenient")


def _strict_form(reply: Reply, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The reply as an object of exactly these names, or None."""
    form = reply.json if reply.json is not None else read_object(reply.text.strip())
    return form if isinstance(form, dict) and set(form) == set(names) else None


def _loose_form(reply: Reply) -> dict[str, Any]:
    text = drop_thinking(reply.text)
    return {} if isinstance(text, Unparsed) else find_object(text) or {}


def _strict_choice(answer: Any, explanation: Any, options: dict[str, str]) -> Choice | None:
    if not isinstance(answer, str) or not isinstance(explanation, str):
        return None
    if options:
        return Choice(answer, options[answer], explanation, "strict") if answer in options else None
    return Choice(None, answer.strip(), explanation, "strict") if answer.strip() else None


def _choose_step(reply: Reply, form: dict[str, Any] | None, options: dict[str, str]) -> Choice | Unparsed:
    strict = None if form is None else _strict_choice(form["answer"], form[_REASONING], options)
    if strict is not None:
        return strict
    text = drop_thinking(reply.text)
    if isinstance(text, Unparsed):
        return text
    choice = parse_choice(text, options)
    reasoning = _loose_form(reply).get(_REASONING)
    if isinstance(choice, Choice) and isinstance(reasoning, str):
        return replace(choice, explanation=reasoning)
    return choice


def _said(value: Any, mode: Mode) -> StepText | Unparsed:
    if not isinstance(value, str):
        return Unparsed("no text")
    return StepText(value.strip(), mode) if value.strip() else Unparsed("an empty text")


def _per_image(value: Any, count: int, mode: Mode) -> tuple[StepText, ...] | Unparsed:
    """One finding for each image, or Unparsed: a list of another length cannot be matched to the images."""
    if not isinstance(value, list):
        return Unparsed("no list of findings")
    if len(value) != count:
        return Unparsed(f"{len(value)} findings for {count} images")
    said = [_said(item, mode) for item in value]
    if any(isinstance(text, Unparsed) for text in said):
        return Unparsed("an image without a finding")
    return tuple(text for text in said if isinstance(text, StepText))


def _six(form: Mapping[str, Any], mode: Mode) -> Sections | Unparsed:
    texts: dict[str, str] = {
        name: said.text for name in SECTIONS if isinstance(said := _said(_joined(form.get(name)), mode), StepText)
    }
    missing = [name for name in SECTIONS if name not in texts]
    if missing:
        return Unparsed(f"sections missing: {', '.join(missing)}")
    return Sections(texts, mode)


def _joined(value: Any) -> Any:
    """A list of points as the numbered lines that were asked for."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(f"{number}. {item}" for number, item in enumerate(value, start=1))
    return value


def _under_headings(text: str) -> dict[str, str]:
    """The text under each heading; a heading that occurs twice is not trusted."""
    sections: dict[str, list[str]] = {}
    twice: set[str] = set()
    lines: list[str] = []
    for line in text.splitlines():
        heading, _, rest = line.lstrip(_BULLETS).partition(":")
        found = _HEADINGS.get(" ".join(heading.strip("*_ ").replace("-", " ").lower().split()))
        if found is None:
            lines.append(line)
            continue
        if found in sections:
            twice.add(found)
        lines = sections[found] = [rest.lstrip("* _")]
    return {name: "\n".join(lines).strip() for name, lines in sections.items() if name not in twice}


_NUMBER = re.compile(r"\d{1,9}(?![\d,.]*\d)")
_LETTER = re.compile(r"\b[A-Z]\b")


def parse_letters(reply: Reply, letters: Sequence[str]) -> list[str] | Unparsed:
    """One letter for each option, in the order asked; a list of another length cannot be matched to the options."""
    text = drop_thinking(reply.text)
    if isinstance(text, Unparsed):
        return text
    form = find_object(text)
    said = form.get("letters") if form is not None else _LETTER.findall(text)
    if not isinstance(said, list) or not all(one in letters for one in said):
        return Unparsed("no list of the letters shown")
    return said if len(said) == len(letters) else Unparsed(f"{len(said)} letters for {len(letters)} options")


def parse_number(reply: Reply) -> int | Unparsed | None:
    """The only number in the reply; None if there is none."""
    said = parse_text(reply, "case_number")
    if not isinstance(said, StepText):
        return said
    found = {int(one) for one in _NUMBER.findall(said.text)}
    if len(found) > 1:
        return Unparsed("several numbers")
    return found.pop() if found else None
