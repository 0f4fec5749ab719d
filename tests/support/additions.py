"""Additions as a contributor would write them: new files and lines for each row of the table in docs/architecture.md.

`write_additions` puts all of them into a copy of the package; `use_additions.py` then uses each.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

TOY_KIND = Path(__file__).parent / "toy_kind"


class Addition(NamedTuple):
    """Files of the package by path: new ones, and what is written before which line of others."""

    files: Mapping[str, str] = MappingProxyType({})
    lines: Mapping[str, Mapping[str, str]] = MappingProxyType({})

    @property
    def touched(self) -> set[str]:
        """Every file that is written or changed."""
        return {*self.files, *self.lines}


WIRE = '''"""Chat Completions under another name."""

from medthink.models.wires.openai_chat import HEADERS, MODELS_PATH, decode, encode, sign

__all__ = ["HEADERS", "MODELS_PATH", "decode", "encode", "sign"]
'''
FIGURE = '''"""Runs by their number of cases."""

from medthink.core.markup import Table
from medthink.report.figures.style import FigureSpec
from medthink.report.runs import ComparableGroup


def cases_drawing(group: ComparableGroup) -> FigureSpec:
    """One bar per run."""
    counts = [len(entry.material.cases) for entry in group.entries]
    rows = tuple((entry.label, str(count)) for entry, count in zip(group.entries, counts, strict=True))
    table = Table(("Run", "Cases"), rows, frozenset({1}))
    return FigureSpec("cases", "Cases by run", "One bar a run.", lambda figure: figure.subplots().barh(
        [entry.label for entry in group.entries], counts
    ), 1.5, table)
'''
COMMAND = '''"""`medthink hello`."""

import click


@click.command()
def hello() -> None:
    """Say hello."""
    click.echo("hello from a new command")
'''
STAGE_SETTINGS = '''class ShortSettings(StageSettings, frozen=True, kw_only=True):
    """How short is short."""

    fewest: Annotated[int, Meta(description="Words of a history that is long enough.", ge=1)] = 5


'''
STAGE = '''"""Short: leave out cases with a short history."""

from medthink.curate.ask import StageModel
from medthink.curate.decision import StageResult, drop_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import ShortSettings
from medthink.curate.stage import Stage


class ShortStage(Stage[ShortSettings]):
    """One decision by length."""

    name = "short"

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
        """Keep a history of enough words."""
        if len(draft.case.question.history.split()) >= self.settings.fewest:
            return pass_case(draft, reason="long-enough")
        return drop_case("short-history")


STAGE = ShortStage
'''
TASK = '''
class ImpressionOutcome(AnswerOutcome, frozen=True, kw_only=True):
    """The outcome of `impression`."""

    impression: StepText | None = None


async def impress(question: Question, cues: Cues, ask: Ask, condition: Condition) -> ImpressionOutcome:
    """Ask for an impression, and for the diagnosis."""
    prompts, outcome = load_prompts(condition.prompt_set), ImpressionOutcome()
    try:
        reply = await ask(prompts.impression(question))
        outcome = replace(outcome, impression=_readable(parsing.parse_text(reply, "impression")))
        reply = await ask(prompts.answer(question, cues))
        return replace(outcome, choice=_readable(parsing.parse_answer(reply, question.options)))
    except Unanswered as stop:
        return outcome_so_far(outcome, stop)


IMPRESSION = own_text("impression", "Impression", lambda reference: reference.findings)
'''
PROMPT = '''    def impression(self, question: Question) -> Prompt:
        """Ask for an impression of all images."""
        return self._write("impression", question, _form("impression", impression=_TEXT))

'''
METRIC = """    yield Metric("same_length", "1", "pairs", "higher", 0.0, 1.0, "same_length", _same_length)
"""
METRIC_FUNCTION = """def _same_length(references: Sequence[str], candidates: Sequence[str]) -> list[float | None]:
    return [float(len(ref) == len(cand)) for ref, cand in zip(references, candidates, strict=True)]


"""
ADDITIONS: dict[str, Addition] = {
    "provider": Addition(
        files={"models/wires/echo.py": WIRE},
        lines={
            "models/catalog.py": {
                '    "server": Provider(\n': '    "echo": Provider(wire="echo", key_variables=(), needs_key=False),\n'
            }
        },
    ),
    "text metric": Addition(
        lines={
            "metrics/registry.py": {
                "def _bleus() -> ": METRIC_FUNCTION,
                '    yield Metric("bleu2"': METRIC,
            }
        },
    ),
    "condition": Addition(
        lines={
            "workflow/condition.py": {
                "    show_options: Annotated[bool": "    history_words: Annotated[int | None, "
                'ConditionField("Show only so many words of the history.", low=1)] = None\n',
            },
            "workflow/view.py": {
                "    shown = Question(\n": "    question = replace(question, history=' '.join("
                "question.history.split()[: condition.history_words]))\n",
                "import msgspec\n": "from msgspec.structs import replace\n",
            },
        }
    ),
    "task": Addition(
        files={
            "workflow/prompt_sets/default/impression.md": "{{history}}\n\n{{images}}\n\nGive your impression.\n",
        },
        lines={
            "workflow/ask.py": {'    "hidden_option",\n': '    "impression",\n'},
            "workflow/prompts.py": {"    def hidden_option(self": PROMPT},
            "workflow/tasks.py": {
                "def _twi_kinds(": TASK + "\n\n",
                '        Task(\n            "recall",\n': '        Task("impression", impress, Condition(), '
                'lambda _: ("impression", "answer"), texts=(IMPRESSION,)),\n',
                "from medthink.workflow.view import Cues": "from medthink.workflow.written_text import own_text\n",
            },
        },
    ),
    "text of a submitter": Addition(
        lines={
            "board/submissions.py": {
                '    notes: str = ""\n': '    region: str = ""\n',
                '    AskedText(name="link"': '    AskedText(name="region", title="Region", fact="Region"),\n',
            },
            "web/submissions/rest.py": {
                '        link: Short = "",\n': '        region: Short = "",\n',
                '"link": link}': '"region": region, ',
            },
        }
    ),
    "figure": Addition(
        files={"report/figures/cases.py": FIGURE},
        lines={
            "report/page.py": {
                "def _drawings(": "from medthink.report.figures.cases import cases_drawing\n\n\n",
                "    yield from (drawing for drawing in (*found": "    yield cases_drawing(group)\n",
            }
        },
    ),
    "command": Addition(
        files={"cli/hello.py": COMMAND},
        lines={
            "cli/__init__.py": {'    "doctor": Command(': '    "hello": Command("hello:hello", "Say hello", _START),\n'}
        },
    ),
    "check": Addition(
        lines={
            "cases/check/cases.py": {
                "    if _is_blank(reference.findings):\n": '    if "pain" in case.question.history:\n'
                '        found.append(FoundDefect("history-painful", "CLINICAL_HISTORY", "pain"))\n',
            },
            "cases/check/defects.py": {
                '    Defect("history-empty"': '    Defect("history-painful", "warning", "there is pain", "comfort"),\n',
            },
        }
    ),
    "prompt": Addition(
        files={"workflow/prompt_sets/default/blocks/image.md": "Picture {{number}}:\n"},
    ),
    "slice": Addition(
        lines={
            "cases/slices.py": {'    "longitudinal": lambda': '    "parity": lambda case: (str(case.id % 2),),\n'},
        }
    ),
    "kind of judging": Addition(
        files={
            "judge/kinds/certainty.py": (TOY_KIND / "certainty.py").read_text(encoding="utf-8"),
            "judge/prompts/certainty.md": (TOY_KIND / "certainty.md").read_text(encoding="utf-8"),
        },
        lines={
            "judge/kinds/__init__.py": {
                "KINDS: dict": "from medthink.judge.kinds.certainty import CertaintyKind\n\n",
                "        PreferenceKind(),\n": "        CertaintyKind(),\n",
            }
        },
    ),
    "stage of curation": Addition(
        files={"curate/stages/short.py": STAGE},
        lines={
            "curate/settings.py": {
                "class StageEntry(": STAGE_SETTINGS,
                '    "icd": StageEntry(': '    "short": StageEntry("Leave out short histories", ShortSettings),\n',
            }
        },
    ),
}


def write_additions(package: Path, chosen: dict[str, Addition]) -> None:
    """Write the additions into a copy of the package."""
    for one in chosen.values():
        for path, text in one.files.items():
            (package / path).write_text(text, encoding="utf-8")
        for path, lines in one.lines.items():
            text = (package / path).read_text(encoding="utf-8")
            for before, added in lines.items():
                assert text.count(before) == 1, (path, before, text.count(before))
                text = text.replace(before, added + before)
            (package / path).write_text(text, encoding="utf-8")
