"""Prompts of judges: fixed text from files, definitions from the rubric, and everything else as fenced data."""

from functools import cache
from pathlib import Path
from typing import Any

from medthink.cases.case import Case
from medthink.core.digest import digest_value
from medthink.judge.decisive import decisive_data, decisive_properties
from medthink.judge.edits.harmless import reword_text
from medthink.judge.judgement import Evidence
from medthink.judge.kinds import KINDS
from medthink.judge.rubric import SECTIONS, load_rubric
from medthink.judge.units import NOT_SHOWN, UnitSet, UnitSource
from medthink.workflow.forms import TEXT, FormPrompt, PromptFiles, form_schema, list_of

SPLIT = "split"
DECISIVE = "decisive"
REWORD = "reword"
_FILES = PromptFiles(Path(__file__).parent / "prompts")
_WITH_IMAGES = " The images of the case come first; look at them yourself before you believe a text about them."


def split_prompt(source: UnitSource) -> FormPrompt:
    """Ask for the atomic steps of a text."""
    ((name, text),) = source.parts.items()
    return _FILES.prompt(
        SPLIT,
        f"{source.case} {source.sample}",
        data={name: text},
        values={"max_steps": str(source.max_units)},
        schema=lambda call: form_schema(SPLIT, call, steps=list_of(TEXT)),
    )


def decisive_prompt(case: Case) -> FormPrompt:
    """Ask for the decisive findings of a case."""
    return _FILES.prompt(
        DECISIVE,
        str(case.id),
        data=decisive_data(case),
        values={"omissions": load_rubric().section("omissions")},
        schema=lambda call: form_schema(DECISIVE, call, **decisive_properties(case)),
    )


def reword_prompt(source: UnitSource) -> FormPrompt:
    """Ask for a text in other words."""
    return _FILES.prompt(
        REWORD,
        str(source.case),
        data=dict(source.parts),
        schema=lambda call: form_schema(REWORD, call, text=TEXT),
        by_rules=lambda: {"text": reword_text(source.parts["text"])},
    )


def verdict_prompt(units: UnitSet, evidence: Evidence, source: UnitSource) -> FormPrompt:
    """Ask for one verdict per unit; `source` is the whole text that the units are from."""
    kind, names = KINDS[units.what], evidence.names()
    images = [part for number, image in enumerate(evidence.images, start=1) for part in (f"Image {number}:", image)]
    sections = {name.replace(" ", "_"): load_rubric().section(name) for name in SECTIONS}
    return _FILES.prompt(
        units.what,
        f"{units.case} {units.sample}",
        data=_data(units, evidence, source),
        values={
            "images": _WITH_IMAGES if evidence.images else "",
            "rests_on": ", ".join(f'"{name}"' for name in names),
            **sections,
        },
        schema=lambda call: kind.schema(call, units, names),
        images=tuple(images),
        by_rules=lambda: kind.judge_by_rule(units, evidence, source),
    )


@cache
def prompt_version(kind: str) -> str:
    """The digest of all text that prompts of this kind are made from, including the rubric."""
    return digest_value([_FILES.read("system"), _FILES.read(kind), load_rubric().version()])


def _data(units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:
    author: dict[str, Any] = {"answer": source.answer} if source.answer else {}
    return {
        "case": evidence.data(),
        "author": author | {"images_shown": evidence.shown, "text": source.marked(units.units)},
        "units": [
            {"id": unit.id, "number": number, "part": unit.part.removesuffix(NOT_SHOWN), "text": unit.text}
            for number, unit in enumerate(units.units, start=1)
        ],
    }
