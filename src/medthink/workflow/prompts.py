"""Prompts: question and cues in, messages out; no clock, no randomness, no network.

All text comes from the files of a prompt set. A file such as `answer.md` is made of paragraphs; a paragraph that is
just `{{name}}` is replaced by a block, or dropped if there is nothing to show. The digest of the files that a kind of
prompt is made from is its version.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from medthink.cases.case import Image, Question
from medthink.cases.sections import SECTIONS
from medthink.core.digest import digest_value
from medthink.core.errors import DataError, UsageError
from medthink.models.request import Schema
from medthink.workflow.ask import Prompt, PromptKind
from medthink.workflow.view import Cues

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def answer_schema(letters: Iterable[str]) -> Schema:
    """Schema of reasoning and a letter, or without letters the name of a diagnosis."""
    return _form("answer", explanation=_TEXT, answer=_answer(letters))


def findings_schema() -> Schema:
    """Schema of step 1: the findings of one image."""
    return _form("findings", findings=_TEXT)


def summary_schema() -> Schema:
    """Schema of step 2: the summary of all images."""
    return _form("summary", summary=_TEXT)


def twi_schema(letters: Iterable[str]) -> Schema:
    """All three steps in one reply."""
    return _form(
        "think_with_images",
        step1_per_image_findings=_TEXTS,
        step2_integrated_summary=_TEXT,
        step3_differential_reasoning=_TEXT,
        answer=_answer(letters),
    )


def discussion_schema() -> Schema:
    """The six sections of a case discussion."""
    return _form("discussion", **dict.fromkeys(SECTIONS, _TEXT))


def hidden_option_schema() -> Schema:
    """The text of an option that is hidden."""
    return _form("hidden_option", option=_TEXT)


def option_letters_schema(letters: Iterable[str]) -> Schema:
    """A letter for each option."""
    return _form("option_letters", letters={"type": "array", "items": {"type": "string", "enum": list(letters)}})


def case_number_schema() -> Schema:
    """A number, or that it is not known."""
    return _form("case_number", case_number=_TEXT)


def _answer(letters: Iterable[str]) -> dict[str, Any]:
    known = list(letters)
    return {"type": "string", "enum": known} if known else _TEXT


def _form(name: str, /, **properties: dict[str, Any]) -> Schema:
    definition = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Schema(name, definition)


Part = str | Image

_SETS = Path(__file__).parent / "prompt_sets"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
# Places that number or count what is shown; a set may do without.
_COUNTS = frozenset({"count", "number"})
_BLOCKS = frozenset({"history", "images", "findings", "summary", "options"})
_OWN_BLOCKS: dict[PromptKind, tuple[str, ...]] = {
    "hidden_option": ("option_hidden",),
    "option_letters": ("options_reordered", "option_numbered"),
}
"""The blocks that only one kind of prompt has."""
_OPEN_KINDS = frozenset({"answer", "differential", "twi"})
_KINDS: tuple[PromptKind, ...] = get_args(PromptKind)
# Every set has the files of these; for all other kinds it may leave them to the default set.
_OF_EVERY_SET = frozenset({"answer", "findings", "summary", "differential", "twi", "discussion"})
_BLOCK_FILES = (
    "history",
    "history_hidden",
    "images",
    "images_none",
    "image",
    "findings",
    "finding",
    "summary",
    "options",
    "option",
)


class PromptSet(msgspec.Struct, frozen=True):
    """A prompt set: texts by file name."""

    name: str
    files: dict[str, str]

    def answer(self, question: Question, cues: Cues) -> Prompt:
        """Ask for the diagnosis in one call."""
        schema = answer_schema(question.options)
        return self._write("answer", question, schema, findings=cues.findings, summary=cues.summary)

    def findings(self, question: Question, image: Image) -> Prompt:
        """Step 1: ask what one image shows."""
        return self._write("findings", question, findings_schema(), image=image)

    def summary(self, question: Question, findings: tuple[str, ...] | None) -> Prompt:
        """Step 2: ask what the images show together."""
        return self._write("summary", question, summary_schema(), findings=findings)

    def differential(self, question: Question, findings: tuple[str, ...] | None, summary: str | None) -> Prompt:
        """Step 3: ask for the reasoning and the diagnosis."""
        schema = answer_schema(question.options)
        return self._write("differential", question, schema, findings=findings, summary=summary)

    def think_with_images(self, question: Question) -> Prompt:
        """All three steps in one call."""
        return self._write("twi", question, twi_schema(question.options))

    def discussion(self, question: Question, cues: Cues) -> Prompt:
        """Ask for the case's discussion in six sections."""
        schema = discussion_schema()
        return self._write("discussion", question, schema, findings=cues.findings, summary=cues.summary)

    def hidden_option(self, question: Question, hidden: str) -> Prompt:
        """Ask for the text of one option, which is hidden and appears nowhere in the prompt."""
        shown = Question(question.history, question.images, question.options | {hidden: ""})
        lines = [self._option(letter, text, is_hidden=letter == hidden) for letter, text in shown.options.items()]
        options = self._fill("options", lines="\n".join(lines))
        return self._write("hidden_option", shown, hidden_option_schema(), options=options)

    def option_letters(self, question: Question) -> Prompt:
        """Ask which letters the options have in the published case, whose order is not the one shown."""
        texts = enumerate(question.options.values(), start=1)
        lines = [self._fill("option_numbered", number=number, text=text) for number, text in texts]
        options = self._fill("options_reordered", lines="\n".join(lines))
        schema = option_letters_schema(question.options)
        return self._write("option_letters", question, schema, options=options)

    def case_number(self, question: Question) -> Prompt:
        """Ask for the number under which the case was published."""
        return self._write("case_number", question, case_number_schema())

    def version(self, kind: PromptKind) -> str:
        """The digest of the files that prompts of this kind are made from."""
        return digest_value({name: self.files[name] for name in _files_of(kind)})

    def _write(
        self,
        kind: PromptKind,
        question: Question,
        schema: Schema,
        *,
        image: Image | None = None,
        findings: tuple[str, ...] | None = None,
        summary: str | None = None,
        options: str | None = None,
    ) -> Prompt:
        blocks: dict[str, list[Part]] = {
            "history": [self._history(question.history)],
            "images": self._images(question.images if image is None else (image,)),
            "findings": self._findings(findings),
            "summary": [] if summary is None else [self._fill("summary", text=summary)],
            "options": self._options(question.options) if options is None else [options],
        }
        is_open = kind in _OPEN_KINDS and not question.options
        return Prompt(
            kind=kind,
            question=question,
            system=self.files["system.md"],
            parts=_lay_out(self.files[f"{kind}_open.md" if is_open else f"{kind}.md"], blocks),
            schema=schema,
            image=image,
            findings=findings or (),
            summary=summary or "",
        )

    def _history(self, history: str) -> str:
        return self._fill("history", text=history) if history else self._fill("history_hidden")

    def _images(self, images: Sequence[Image]) -> list[Part]:
        if not images:
            return [self._fill("images_none")]
        parts: list[Part] = [self._fill("images", count=len(images))]
        for number, image in enumerate(images, start=1):
            parts += [self._fill("image", number=number), image]
        return parts

    def _findings(self, findings: tuple[str, ...] | None) -> list[Part]:
        lines = [self._fill("finding", number=number, text=text) for number, text in enumerate(findings or (), start=1)]
        return [self._fill("findings", lines="\n".join(lines))] if lines else []

    def _options(self, options: dict[str, str]) -> list[Part]:
        lines = [self._option(letter, text) for letter, text in options.items()]
        return [self._fill("options", lines="\n".join(lines))] if lines else []

    def _option(self, letter: str, text: str, *, is_hidden: bool = False) -> str:
        if is_hidden:
            return self._fill("option_hidden", letter=letter)
        return self._fill("option", letter=letter, text=text)

    def _fill(self, block: str, **values: object) -> str:
        """A block's text with its values filled in once: a value that looks like a placeholder is left unchanged."""
        pieces = _pieces(self.files[f"blocks/{block}.md"])[:]
        pieces[1::2] = [str(values[name]).strip() for name in pieces[1::2]]
        return "".join(pieces)


@cache
def load_prompts(name: str) -> PromptSet:
    """The prompt set of that name; a name with a slash is the path of a folder."""
    folder = Path(name) if "/" in name else _SETS / name
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in _SETS.iterdir() if path.is_dir()))
        raise UsageError(f"no such prompt set: {name}", remedy=f"known: {known}; or give the path of a folder")
    names = sorted({file for kind in _KINDS for file in _files_of(kind)})
    prompts = PromptSet(name, {file: _read(_place_of(folder, file)) for file in names})
    for kind in _KINDS:
        _refuse_unknown_blocks(prompts, kind)
        _refuse_missing_blocks(prompts, kind)
    return prompts


@cache
def _pieces(text: str) -> list[str]:
    """A block's words, and between them the names of its places."""
    return _PLACE.split(text)


def _files_of(kind: PromptKind) -> list[str]:
    own = [f"{kind}.md", f"{kind}_open.md"] if kind in _OPEN_KINDS else [f"{kind}.md"]
    return ["system.md", *own, *(f"blocks/{block}.md" for block in (*_BLOCK_FILES, *_OWN_BLOCKS.get(kind, ())))]


def _place_of(folder: Path, file: str) -> Path:
    """The file in the set, or that of the default set where a set may do without it."""
    is_needed = any(file in _files_of(kind) for kind in _KINDS if kind in _OF_EVERY_SET)
    place = folder / file
    return place if is_needed or place.is_file() else _SETS / "default" / file


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8").strip()
    except FileNotFoundError:
        raise DataError("the prompt set lacks this file", file=path, remedy="copy it from the default set") from None
    except UnicodeDecodeError:
        raise DataError("not UTF-8", file=path, remedy="save the file as UTF-8") from None


def _refuse_unknown_blocks(prompts: PromptSet, kind: PromptKind) -> None:
    for name in _files_of(kind):
        if name.startswith("blocks/"):
            continue
        for paragraph in _paragraphs(prompts.files[name]):
            place = _PLACE.search(paragraph)
            if place and not (place[1] in _BLOCKS and place[0] == paragraph):
                raise DataError(
                    f"{place[0]} is not a block in its own paragraph",
                    file=f"{prompts.name}/{name}",
                    remedy=f"blocks: {', '.join(sorted(_BLOCKS))}",
                )


def _refuse_missing_blocks(prompts: PromptSet, kind: PromptKind) -> None:
    """What a run records as shown must be sent: every block of the default set's file, once, with what it holds."""
    for name in _files_of(kind):
        found, due = (_PLACE.findall(text) for text in (prompts.files[name], _read(_SETS / "default" / name)))
        for place in dict.fromkeys(due):
            if place not in _COUNTS and found.count(place) != 1:
                raise DataError(
                    f"{{{{{place}}}}} occurs {found.count(place)} times; it should occur once",
                    file=f"{prompts.name}/{name}",
                    remedy="put it where it is to be shown, as in the default set",
                )


def _paragraphs(text: str) -> list[str]:
    return text.split("\n\n")


def _lay_out(text: str, blocks: dict[str, list[Part]]) -> tuple[Part, ...]:
    """The file's paragraphs with its blocks in place, neighbouring texts joined, images between."""
    laid: list[Part] = []
    for part in _place_blocks(text, blocks):
        if isinstance(part, str) and laid and isinstance(laid[-1], str):
            laid[-1] = f"{laid[-1]}\n\n{part}"
        else:
            laid.append(part)
    return tuple(laid)


def _place_blocks(text: str, blocks: dict[str, list[Part]]) -> Iterable[Part]:
    for paragraph in _paragraphs(text):
        place = _PLACE.fullmatch(paragraph)
        if place:
            yield from blocks[place[1]]
        else:
            yield paragraph
