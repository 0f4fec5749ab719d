"""Prompts: a question and cues in, what to send out; no clock, no chance, no network.

All words come from the files of a prompt set. A file such as `answer.md` is made of paragraphs; a paragraph that is
just `{{name}}` stands for a block, and falls away where there is nothing to show. The digest of the files that a kind
of prompt is made from is its version.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from medthink.cases.case import Image, Question
from medthink.core.digest import digest_value
from medthink.core.errors import DataError, UsageError
from medthink.models.request import Schema
from medthink.workflow import schemas
from medthink.workflow.ask import Prompt, PromptKind
from medthink.workflow.cues import Cues

Part = str | Image

_SETS = Path(__file__).parent / "prompt_sets"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_BLOCKS = frozenset({"history", "images", "findings", "summary", "options"})
_OPEN_KINDS = frozenset({"answer", "differential", "twi"})
_KINDS: tuple[PromptKind, ...] = ("answer", "findings", "summary", "differential", "twi", "discussion")
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
    """The words of a prompt set, by file name."""

    name: str
    files: dict[str, str]

    def answer(self, question: Question, cues: Cues) -> Prompt:
        """Ask for the diagnosis in one call."""
        schema = schemas.answer_schema(question.options)
        return self._write("answer", question, schema, findings=cues.findings, summary=cues.summary)

    def findings(self, question: Question, image: Image) -> Prompt:
        """Step 1: ask what one image shows."""
        return self._write("findings", question, schemas.findings_schema(), image=image)

    def summary(self, question: Question, findings: tuple[str, ...] | None) -> Prompt:
        """Step 2: ask what the images show together."""
        return self._write("summary", question, schemas.summary_schema(), findings=findings)

    def differential(self, question: Question, findings: tuple[str, ...] | None, summary: str | None) -> Prompt:
        """Step 3: ask for the reasoning and the diagnosis."""
        schema = schemas.answer_schema(question.options)
        return self._write("differential", question, schema, findings=findings, summary=summary)

    def think_with_images(self, question: Question) -> Prompt:
        """All three steps in one call."""
        return self._write("twi", question, schemas.twi_schema(question.options))

    def discussion(self, question: Question, cues: Cues) -> Prompt:
        """Ask for the case's discussion in six sections."""
        schema = schemas.discussion_schema()
        return self._write("discussion", question, schema, findings=cues.findings, summary=cues.summary)

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
    ) -> Prompt:
        blocks: dict[str, list[Part]] = {
            "history": [self._history(question.history)],
            "images": self._images(question.images if image is None else (image,)),
            "findings": self._findings(findings),
            "summary": [] if summary is None else [self._fill("summary", text=summary)],
            "options": self._options(question.options),
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
        lines = [self._fill("option", letter=letter, text=text) for letter, text in options.items()]
        return [self._fill("options", lines="\n".join(lines))] if lines else []

    def _fill(self, block: str, **values: object) -> str:
        """A block's words with its values put in, once: a value that looks like a placeholder stays as it is."""
        pieces = _pieces(self.files[f"blocks/{block}.md"])[:]
        pieces[1::2] = [str(values[name]).strip() for name in pieces[1::2]]
        return "".join(pieces)


@cache
def load_prompts(name: str) -> PromptSet:
    """The prompt set of that name; a name with a slash in it is a folder of one's own."""
    folder = Path(name) if "/" in name else _SETS / name
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in _SETS.iterdir() if path.is_dir()))
        raise UsageError(f"no such prompt set: {name}", remedy=f"known: {known}; or give the path of a folder")
    names = sorted({file for kind in _KINDS for file in _files_of(kind)})
    prompts = PromptSet(name, {file: _read(folder / file) for file in names})
    for kind in _KINDS:
        _refuse_unknown_blocks(prompts, kind)
    return prompts


@cache
def _pieces(text: str) -> list[str]:
    """A block's words, and between them the names of its places."""
    return _PLACE.split(text)


def _files_of(kind: PromptKind) -> list[str]:
    own = [f"{kind}.md", f"{kind}_open.md"] if kind in _OPEN_KINDS else [f"{kind}.md"]
    return ["system.md", *own, *(f"blocks/{block}.md" for block in _BLOCK_FILES)]


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
                    f"{place[0]} is not a block on a paragraph of its own",
                    file=f"{prompts.name}/{name}",
                    remedy=f"blocks: {', '.join(sorted(_BLOCKS))}",
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
