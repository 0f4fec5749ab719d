"""Training examples: what goes in, what is refused, and the form of each trainer."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from calling import call_command
from medthink.bridges.targets import TargetOptions, write_target
from medthink.bridges.trainers import TRAINERS, compute_score, reward_completions
from medthink.cases.benchmark import Benchmark
from medthink.cli.data.export import data_export
from medthink.core.errors import Declined, UsageError
from medthink.core.jsonio import read_jsonl, write_jsonl
from small_benchmark import make_row, picture, write_benchmark


def export(source: Path, out: Path, purpose: str = "sft", **options: Any) -> tuple[str, ...]:
    written = write_target(purpose, Benchmark.open(source), out, TargetOptions(**options), lambda *_: None)
    return (*written.lines, *written.warnings)


def rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    return [line.value for line in read_jsonl(path)]


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Four train and two test cases, with two images each that no other case has."""
    return write_benchmark(tmp_path / "bench", cases=2)


def change(bench: Path, split: str, number: int, **fields: Any) -> None:
    path = bench / f"{split}.jsonl"
    changed = [row | fields if row["title"].endswith(f" {number}") else row for row in rows(path)]
    write_jsonl(path, changed)


def test_the_neutral_form_has_typed_parts_and_relative_paths(bench: Path, tmp_path: Path) -> None:
    assert export(bench, tmp_path / "out", task="twi")[0] == f"4 examples → {tmp_path / 'out'}"
    first = rows(tmp_path / "out/train.jsonl")[0]
    system, user, assistant = first["messages"]
    assert (system["role"], user["role"], assistant["role"]) == ("system", "user", "assistant")
    images = [part["image"] for part in user["content"] if part["type"] == "image"]
    assert images == ["images/case00001/i1x1.jpg", "images/case00001/i1x2.jpg"]
    assert all((tmp_path / "out" / path).read_bytes() == (bench / path).read_bytes() for path in images)
    reply = json.loads(assistant["content"][0]["text"])
    assert reply == {
        "step1_per_image_findings": ["WITHHELD caption 1.1", "WITHHELD caption 1.2"],
        "step2_integrated_summary": "WITHHELD findings 1",
        "step3_differential_reasoning": "WITHHELD discussion 1",
        "answer": "B",
    }


@pytest.mark.parametrize("task", ["answer", "twi"])
@pytest.mark.parametrize("trainer", [name for name, form in TRAINERS.items() if "rl" in form.purposes])
def test_a_prompt_for_rl_holds_nothing_withheld(bench: Path, tmp_path: Path, trainer: Any, task: Any) -> None:
    export(bench, tmp_path / "out", "rl", trainer=trainer, task=task)
    for row in rows(tmp_path / "out" / TRAINERS[trainer].file):
        prompt = row.get("messages") or row["prompt"]
        assert "WITHHELD" not in json.dumps(prompt)
        assert prompt[-1]["role"] == "user"


@pytest.mark.parametrize(
    ("trainer", "purpose"), [(name, purpose) for name, form in TRAINERS.items() for purpose in form.purposes]
)
def test_nothing_of_a_test_case_is_written(bench: Path, tmp_path: Path, trainer: Any, purpose: Any) -> None:
    export(bench, tmp_path / "out", purpose, trainer=trainer)
    hidden = [f"{word} {number}".encode() for number in (100, 101) for word in ("findings", "discussion", "number")]
    hidden += [picture(number * 100 + slot) for number in (100, 101) for slot in (1, 2)]
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file() and file.suffix != ".parquet":
            assert not any(word in file.read_bytes() for word in hidden), file
    data = rows(tmp_path / "out" / TRAINERS[trainer].file)
    assert len(data) == 4 and not any(word in repr(data).encode() for word in hidden[:6])
    assert not list((tmp_path / "out").rglob("case0010*"))


class TestRefused:
    def test_a_history_of_the_test_split(self, bench: Path, tmp_path: Path) -> None:
        long = "A patient with pain of three weeks and fever who had been well before, seen in a clinic by the sea."
        change(bench, "test", 100, CLINICAL_HISTORY=long)
        change(bench, "train", 2, CLINICAL_HISTORY=long.replace("sea", "sea now"))
        lines = export(bench, tmp_path / "out")
        assert lines[0].startswith("3 examples") and "1 refused" in lines[1]
        assert [row["case"] for row in rows(tmp_path / "out/train.jsonl")] == [1, 3, 4]
        readme = (tmp_path / "out/README.md").read_text()
        assert "| 2 | its history is" in readme and "test case 100 |" in readme and long[:30] not in readme
        assert not (tmp_path / "out/images/case00002").exists()

    def test_a_picture_of_the_test_split(self, bench: Path, tmp_path: Path) -> None:
        shutil.copy(bench / "images/case00100/i100x1.jpg", bench / "images/case00003/i3x2.jpg")
        export(bench, tmp_path / "out")
        assert [row["case"] for row in rows(tmp_path / "out/train.jsonl")] == [1, 2, 4]
        assert "| 3 | image 2 is image 1 of test case 100 |" in (tmp_path / "out/README.md").read_text()

    def test_a_picture_that_was_compressed_again(self, bench: Path, tmp_path: Path) -> None:
        smooth = Image.linear_gradient("L").rotate(30).resize((200, 160))
        smooth.save(bench / "images/case00100/i100x1.jpg", quality=95)
        smooth.save(bench / "images/case00004/i4x1.jpg", quality=70)
        export(bench, tmp_path / "out")
        assert "| 4 | image 1 looks like image 1 of test case 100 |" in (tmp_path / "out/README.md").read_text()

    def test_the_same_case_number(self, bench: Path, tmp_path: Path) -> None:
        with (bench / "train.jsonl").open("a") as stream:
            stream.write(json.dumps(make_row(100, 2)) + "\n")
        export(bench, tmp_path / "out")
        assert "| 100 | it is in test too |" in (tmp_path / "out/README.md").read_text()

    def test_another_benchmark_is_held_out_by_against(self, bench: Path, tmp_path: Path) -> None:
        other = write_benchmark(tmp_path / "other", cases=1)  # its train split repeats ours
        (bench / "test.jsonl").unlink()
        lines = export(bench, tmp_path / "unchecked")
        assert "not checked for held-out cases" in lines[-1]
        (other / "test.jsonl").unlink()
        with pytest.raises(Declined, match="no example could be made from any case"):
            export(bench, tmp_path / "out", held_out=(other,))
        assert not (tmp_path / "out").exists()


class TestLeftOut:
    def test_a_case_without_the_text_of_its_reply(self, bench: Path, tmp_path: Path) -> None:
        change(bench, "train", 1, image_02_caption=" ")
        change(bench, "train", 2, discussion="")
        change(bench, "train", 3, correct_answer="X")
        lines = export(bench, tmp_path / "out", task="twi")
        assert lines[0].startswith("1 example") and len(lines) == 4
        assert export(bench, tmp_path / "out2", "rl")[0].startswith("3 examples")

    def test_a_case_without_an_image(self, bench: Path, tmp_path: Path) -> None:
        (bench / "images/case00001/i1x1.jpg").unlink()
        assert "1 left out: an image is missing or cannot be read" in export(bench, tmp_path / "out")
        done = call_command(data_export, [bench, "-o", tmp_path / "again", "--format", "sft"])
        assert isinstance(done.exception, Declined) and "cannot be read: 1" in str(done.exception)
        assert (tmp_path / "again").is_dir()

    @pytest.mark.parametrize("purpose", ["sft", "rl"])
    def test_a_case_with_an_image_that_does_not_decode(self, bench: Path, tmp_path: Path, purpose: str) -> None:
        image = bench / "images/case00001/i1x1.jpg"
        image.write_bytes(image.read_bytes()[:-200])
        done = call_command(data_export, [bench, "-o", tmp_path / "out", "--format", purpose])
        assert isinstance(done.exception, Declined) and "cannot be read: 1" in str(done.exception)
        assert "case00001" not in (tmp_path / "out/train.jsonl").read_text(encoding="utf-8")

    def test_a_discussion_without_its_six_sections(self, bench: Path, tmp_path: Path) -> None:
        titles = ("Background", "Clinical Perspective", "Imaging Perspective", "Clinical Significance", "Outcome")
        text = "\n".join(f"{title}: Some words." for title in (*titles, "Teaching Points"))
        change(bench, "train", 4, discussion=text)
        lines = export(bench, tmp_path / "out", task="discussion")
        assert lines[:2] == (f"1 examples → {tmp_path / 'out'}", "3 left out: the discussion lacks a section")


class TestTrainers:
    @pytest.mark.parametrize("trainer", ["ms-swift", "llama-factory", "verl"])
    def test_the_word_for_an_image_in_a_history_is_no_mark(self, bench: Path, tmp_path: Path, trainer: Any) -> None:
        change(bench, "train", 1, CLINICAL_HISTORY="Sent <image> by a colleague.", discussion="As <video> shows.")
        export(bench, tmp_path / "out", trainer=trainer)
        first = rows(tmp_path / "out" / TRAINERS[trainer].file)[0]
        whole = "".join(message["content"] for message in first["messages"])
        assert whole.count("<image>") == len(first["images"]) == 2
        assert "Sent [image] by" in whole and "[video]" in whole

    def test_trl_keeps_images_between_the_texts_and_bytes_inside(self, bench: Path, tmp_path: Path) -> None:
        export(bench, tmp_path / "out", trainer="trl")
        first = rows(tmp_path / "out/train.parquet")[0]
        kinds = [part["type"] for part in first["prompt"][1]["content"]]
        assert kinds.count("image") == 2 and kinds.index("image") > kinds.index("text")
        assert set(first["prompt"][1]["content"][0]) == {"type", "text"}
        assert first["images"][1]["bytes"] == (bench / "images/case00001/i1x2.jpg").read_bytes()

    def test_llama_factory_finds_its_dataset_info(self, bench: Path, tmp_path: Path) -> None:
        export(bench, tmp_path / "out", trainer="llama-factory")
        info = json.loads((tmp_path / "out/dataset_info.json").read_bytes())["medthink"]
        assert (info["file_name"], info["formatting"]) == ("train.jsonl", "sharegpt")
        assert info["tags"]["user_tag"] == "user" and info["columns"]["images"] == "images"

    @pytest.mark.parametrize("trainer", ["verl", "ms-swift"])
    def test_the_reward_file_beside_the_data_is_python(self, bench: Path, tmp_path: Path, trainer: Any) -> None:
        export(bench, tmp_path / "out", "rl", trainer=trainer)
        compile((tmp_path / "out/reward.py").read_text(), "reward.py", "exec")

    def test_keys_reward_as_the_case_itself_does(self, bench: Path, tmp_path: Path) -> None:
        export(bench, tmp_path / "trl", "rl", trainer="trl", task="twi")
        export(bench, tmp_path / "verl", "rl", trainer="verl", task="answer")
        solution = rows(tmp_path / "trl/train.parquet")[0]["solution"]
        right, wrong = '{"explanation": "x", "answer": "B"}', '{"explanation": "x", "answer": "A"}'
        completions = [right, [{"role": "assistant", "content": wrong}], "…"]
        assert reward_completions(completions, [solution] * 3, prompts=[]) == [1.0, 0.0, 0.0]
        truth = rows(tmp_path / "verl/train.parquet")[0]["reward_model"]["ground_truth"]
        assert compute_score("medthink", right, truth, {}) == {"score": 1.0, "letter": 1.0, "parsed": 1.0}
        assert compute_score("medthink", None, truth)["parsed"] == 0.0
        no_text = [{"content": None}, {"content": [None]}, {"content": [{"type": "image"}]}, {"role": "assistant"}]
        nothing = [[], None, [None], *no_text, *([message] for message in no_text)]
        assert reward_completions(nothing, [solution] * len(nothing)) == [0.0] * len(nothing)
        assert reward_completions([{"role": "assistant", "content": right}], [solution]) == [1.0]
        assert compute_score("medthink", "…", truth) == {"score": 0.0, "letter": 0.0, "parsed": 0.0}


@pytest.mark.parametrize(
    ("purpose", "options", "said"),
    [
        ("rl", {"trainer": "llama-factory"}, "does not support rl"),
        ("rl", {"task": "discussion"}, "there is no reward for"),
    ],
)
def test_what_cannot_be_written_is_refused(bench: Path, tmp_path: Path, purpose: Any, options: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        export(bench, tmp_path / "out", purpose, **options)


def test_a_benchmark_without_a_train_split_is_refused(bench: Path, tmp_path: Path) -> None:
    (bench / "train.jsonl").unlink()
    with pytest.raises(UsageError, match="no split 'train'"):
        export(bench, tmp_path / "out")
