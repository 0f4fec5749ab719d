import re
import shutil
from pathlib import Path

import pytest

import medthink.workflow.prompts as prompts_module
from medthink.cases.case import Image, Question
from medthink.core.errors import DataError, UsageError
from medthink.workflow.ask import Prompt
from medthink.workflow.prompts import PromptSet, load_prompts
from medthink.workflow.view import NO_CUES, Cues
from scripted_case import make_question

SETS = Path(prompts_module.__file__).parent / "prompt_sets"
NAMES = sorted(path.name for path in SETS.iterdir())
QUESTION = make_question(3)
OPEN = Question(QUESTION.history, QUESTION.images, {})


def all_prompts(prompts: PromptSet, question: Question) -> list[Prompt]:
    return [
        prompts.answer(question, NO_CUES),
        prompts.findings(question, QUESTION.images[1]),
        prompts.summary(question, ("one", "two", "three")),
        prompts.differential(question, ("one", "two", "three"), "all"),
        prompts.think_with_images(question),
        prompts.discussion(question, NO_CUES),
    ]


def words(prompt: Prompt) -> str:
    return "\n".join(part for part in prompt.parts if isinstance(part, str))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("question", [QUESTION, OPEN], ids=["options", "open"])
def test_every_name_of_the_schema_is_asked_for_and_no_placeholder_is_left(name: str, question: Question) -> None:
    for prompt in all_prompts(load_prompts(name), question):
        assert "{{" not in prompt.system + words(prompt)
        assert "\n\n\n" not in words(prompt)
        for field in prompt.schema.definition["properties"]:
            assert f'"{field}"' in words(prompt), (prompt.kind, field)
        assert ("Options:" in words(prompt)) == (bool(question.options) and prompt.kind not in ("findings", "summary"))


@pytest.mark.parametrize("name", NAMES)
def test_every_set_says_what_it_is_for(name: str) -> None:
    assert "research and education" in load_prompts(name).files["system.md"]


def test_images_follow_their_numbers() -> None:
    parts = load_prompts("default").answer(QUESTION, NO_CUES).parts
    places = [place for place, part in enumerate(parts) if isinstance(part, Image)]
    assert [parts[place] for place in places] == list(QUESTION.images)
    for number, place in enumerate(places, start=1):
        assert parts[place - 1].endswith(f"Image {number}:")
    assert "Images: 3." in parts[0]


def test_what_is_not_given_is_said() -> None:
    empty = Question("", (), QUESTION.options)
    text = words(load_prompts("default").answer(empty, NO_CUES))
    assert "Clinical history: not given." in text
    assert "Images: none given." in text


def test_a_findings_prompt_holds_one_image_and_no_options() -> None:
    prompt = load_prompts("default").findings(QUESTION, QUESTION.images[2])
    assert [part for part in prompt.parts if isinstance(part, Image)] == [QUESTION.images[2]]
    assert prompt.image is QUESTION.images[2]
    assert not [text for text in QUESTION.options.values() if text in words(prompt)]


def test_a_summary_prompt_shows_no_options() -> None:
    prompt = load_prompts("default").summary(QUESTION, ("one", "two", "three"))
    assert not [text for text in QUESTION.options.values() if text in words(prompt)]
    assert "Image 2: two" in words(prompt)


def test_cues_stand_in_the_prompt() -> None:
    text = words(load_prompts("default").answer(QUESTION, Cues(("one", "two", "three"), "taken together")))
    assert "Image 3: three" in text
    assert "taken together" in text


def test_a_history_that_looks_like_a_placeholder_stays_as_it_is() -> None:
    tricky = Question("Pain {{options}} and {{text}}.", QUESTION.images, {"A": "{{history}}", "B": "b"})
    text = words(load_prompts("default").answer(tricky, NO_CUES))
    assert text.count("Pain {{options}} and {{text}}.") == 1
    assert "A. {{history}}" in text


def test_schemas_are_within_every_strict_mode() -> None:
    allowed = {"type", "properties", "required", "additionalProperties", "items", "enum"}
    for question in (QUESTION, OPEN):
        for prompt in all_prompts(load_prompts("default"), question):
            form = prompt.schema.definition
            assert form["additionalProperties"] is False
            assert form["required"] == list(form["properties"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", prompt.schema.name)
            for field in form["properties"].values():
                assert set(field) <= allowed
    answer = load_prompts("default").answer(QUESTION, NO_CUES).schema.definition
    assert list(answer["properties"]) == ["explanation", "answer"], "reasoning stands before the letter"
    assert answer["properties"]["answer"]["enum"] == list("ABCDE")


def copy_set(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SETS / "default", tmp_path / "mine"))


def test_the_version_follows_the_files_that_are_used(tmp_path: Path) -> None:
    folder = copy_set(tmp_path)
    default = load_prompts("default")
    assert load_prompts(f"{folder}").version("answer") == default.version("answer"), "the name is of no account"
    changed = copy_set(tmp_path / "more")
    (changed / "answer.md").write_text((changed / "answer.md").read_text() + "Be brief.\n")
    mine = load_prompts(f"{changed}")
    assert mine.version("answer") != default.version("answer")
    assert mine.version("discussion") == default.version("discussion")
    (folder / "blocks/options.md").write_text("Choices:\n{{lines}}\n")
    load_prompts.cache_clear()
    for kind in ("answer", "discussion", "twi"):
        assert load_prompts(f"{folder}").version(kind) != default.version(kind)


def test_a_prompt_set_that_is_not_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such prompt set"):
        load_prompts("fancy")
    folder = copy_set(tmp_path)
    (folder / "twi.md").write_text("{{history}}\n\nSee {{images}} here.\n")
    with pytest.raises(DataError, match="in its own paragraph"):
        load_prompts(f"{folder}")
    (folder / "twi.md").unlink()
    with pytest.raises(DataError, match="lacks this file"):
        load_prompts(f"{folder}")


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        ("answer.md", "{{history}}\n\n{{findings}}\n\n{{summary}}\n\n{{options}}\n\nAnswer.", "images"),
        (
            "answer.md",
            "{{history}}\n\n{{images}}\n\n{{images}}\n\n{{findings}}\n\n{{summary}}\n\n{{options}}\n\nAnswer.",
            "images",
        ),
        ("findings.md", "{{history}}\n\nWhat does the image show?", "images"),
        ("discussion.md", "{{images}}\n\n{{findings}}\n\n{{summary}}\n\n{{options}}\n\nDiscuss.", "history"),
        ("blocks/options.md", "Choose one.", "lines"),
        ("blocks/history.md", "The history is hidden.", "text"),
    ],
)
def test_a_set_that_would_not_send_what_a_run_records_is_refused(
    tmp_path: Path, file: str, text: str, place: str
) -> None:
    folder = copy_set(tmp_path)
    (folder / file).write_text(text + "\n")
    with pytest.raises(DataError, match=rf"\{{\{{{place}\}}\}} occurs [02] times") as caught:
        load_prompts(f"{folder}")
    assert file in caught.value.file
