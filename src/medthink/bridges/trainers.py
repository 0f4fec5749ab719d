"""Training examples in the format of each trainer: a neutral one, TRL, verl, ms-swift and LLaMA-Factory.

The neutral form keeps every message as typed parts, with image paths relative to its folder. verl, ms-swift and
LLaMA-Factory expect texts in which `<image>` is a placeholder for the next image; the same word in a case's own text
would shift all later images, so there its angle brackets become square ones.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from medthink.cases.case import Image
from medthink.cases.files.export import copy_as_shown
from medthink.core.errors import DataError
from medthink.core.jsonio import encode_json, write_json, write_jsonl
from medthink.scoring.reward import RewardKey, reward_by_key
from medthink.workflow.ask import Prompt

Purpose = Literal["sft", "rl"]
SOURCE = "medthink"

_IMAGE_MARK = "<image>"
_MARK = re.compile(r"<(image|video|audio|bbox|ref-object|cot-process|start-image)>")
_GROUP_EXAMPLES = 16  # images are inside, so a row group must be small


class TrainingExample(msgspec.Struct, frozen=True, kw_only=True):
    """One training example: a prompt, and the expert's reply (sft) or the key of the reward (rl)."""

    case: int
    task: str
    prompt: Prompt
    reply: str | None = None
    key: RewardKey | None = None

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of the prompt, in its order."""
        return tuple(part for part in self.prompt.parts if isinstance(part, Image))

    @property
    def solution(self) -> str:
        """The key as one JSON string, which every trainer passes to a reward function unchanged."""
        return encode_json(msgspec.to_builtins(self.key)).decode()


Row = dict[str, Any]
Examples = Iterable[TrainingExample]


class TrainerForm(NamedTuple):
    """A trainer: its purposes, its file, the function that writes it, and the next command."""

    purposes: tuple[Purpose, ...]
    file: str
    write: Callable[[Examples, Path, Purpose], None]
    how_to: dict[Purpose, str]


def _write_neutral(examples: Examples, folder: Path, purpose: Purpose) -> None:
    def rows() -> Iterator[Row]:
        for example in examples:
            _copy(example, folder)
            row = {"id": f"train-{example.case}", "case": example.case, "task": example.task}
            row["messages"] = [*_typed(example.prompt), *_typed_reply(example)]
            yield row | (_plain_key(example) if purpose == "rl" else {})

    write_jsonl(folder / "train.jsonl", rows())


def _write_marked(examples: Examples, folder: Path, purpose: Purpose) -> None:
    def rows() -> Iterator[Row]:
        for example in examples:
            _copy(example, folder)
            row = {"messages": _marked(example), "images": [image.path for image in example.images]}
            yield row | ({"solution": example.solution} if purpose == "rl" else {})

    write_jsonl(folder / "train.jsonl", rows())


def _write_swift(examples: Examples, folder: Path, purpose: Purpose) -> None:
    _write_marked(examples, folder, purpose)
    if purpose == "rl":
        (folder / "reward.py").write_text(_SWIFT_PLUGIN, encoding="utf-8")


def _write_llama_factory(examples: Examples, folder: Path, purpose: Purpose) -> None:
    _write_marked(examples, folder, purpose)
    tags = {"role_tag": "role", "content_tag": "content"}
    tags |= {"user_tag": "user", "assistant_tag": "assistant", "system_tag": "system"}
    columns = {"messages": "messages", "images": "images"}
    about = {"file_name": "train.jsonl", "formatting": "sharegpt", "columns": columns, "tags": tags}
    write_json(folder / "dataset_info.json", {SOURCE: about})


def _write_trl(examples: Examples, folder: Path, purpose: Purpose) -> None:
    import pyarrow as pa

    part = pa.struct([("type", pa.string()), ("text", pa.string())])
    messages = pa.list_(pa.struct([("role", pa.string()), ("content", pa.list_(part))]))
    last = pa.field("completion", messages) if purpose == "sft" else pa.field("solution", pa.string())

    def row(example: TrainingExample) -> Row:
        # TRL treats a part with the key "image" as filled in, so the paths must not be there.
        bare = [_without_path(message) for message in _typed(example.prompt)]
        end = _typed_reply(example) if purpose == "sft" else example.solution
        return {"prompt": bare, last.name: end}

    _write_parquet(examples, folder, [pa.field("prompt", messages), last], row)


def _write_verl(examples: Examples, folder: Path, purpose: Purpose) -> None:
    import pyarrow as pa

    text = pa.string()
    messages = pa.list_(pa.struct([("role", text), ("content", text)]))
    if purpose == "sft":
        _write_parquet(examples, folder, [pa.field("messages", messages)], lambda one: {"messages": _marked(one)})
        return
    fields = [pa.field("data_source", text), pa.field("prompt", messages), pa.field("ability", text)]
    fields.append(pa.field("reward_model", pa.struct([("style", text), ("ground_truth", text)])))
    fields.append(pa.field("extra_info", pa.struct([("split", text), ("index", pa.int64())])))

    def row(example: TrainingExample) -> Row:
        return {
            "data_source": SOURCE,
            "prompt": _marked(example),
            "ability": "radiology",
            "reward_model": {"style": "rule", "ground_truth": example.solution},
            "extra_info": {"split": "train", "index": example.case},
        }

    _write_parquet(examples, folder, fields, row)
    (folder / "reward.py").write_text(_VERL_REWARD, encoding="utf-8")


def _write_parquet(examples: Examples, folder: Path, fields: list[Any], make: Callable[[TrainingExample], Row]) -> None:
    """Rows with embedded images, with the metadata by which `datasets` recognises them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {"images": {"feature": {"_type": "Image"}, "_type": "List"}}
    note = {"huggingface": encode_json({"info": {"features": features}})}
    schema = pa.schema([*fields, pa.field("images", pa.list_(picture))], metadata=note)
    stream = iter(examples)
    with pq.ParquetWriter(folder / "train.parquet", schema, compression="zstd") as writer:
        while group := list(islice(stream, _GROUP_EXAMPLES)):
            rows = [make(example) | {"images": [_embedded(image) for image in example.images]} for example in group]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _embedded(image: Image) -> Row:
    return {"bytes": image.as_shown().data, "path": image.path}


def _copy(example: TrainingExample, folder: Path) -> None:
    for image in example.images:
        copy_as_shown(image, folder)


def _typed(prompt: Prompt) -> list[Row]:
    """The system's and the user's message as typed parts."""
    parts = [_typed_part(part) for part in prompt.parts]
    return [{"role": "system", "content": [_typed_part(prompt.system)]}, {"role": "user", "content": parts}]


def _typed_part(part: str | Image) -> Row:
    return {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "image": part.path}


def _typed_reply(example: TrainingExample) -> list[Row]:
    return [] if example.reply is None else [{"role": "assistant", "content": [_typed_part(example.reply)]}]


def _without_path(message: Row) -> Row:
    parts = [{"type": part["type"], "text": part.get("text")} for part in message["content"]]
    return {"role": message["role"], "content": parts}


def _plain_key(example: TrainingExample) -> Row:
    key = msgspec.to_builtins(example.key)
    # A list of pairs: with options by letter, cases of four and of five options would have different columns.
    options = [{"letter": letter, "text": text} for letter, text in key["options"].items()]
    return {"solution": key | {"options": options}}


def _marked(example: TrainingExample) -> list[Row]:
    """The messages as strings with a placeholder for each image."""
    texts = [_IMAGE_MARK if isinstance(part, Image) else _without_marks(part) for part in example.prompt.parts]
    messages = [
        {"role": "system", "content": _without_marks(example.prompt.system)},
        {"role": "user", "content": "\n\n".join(texts)},
    ]
    if example.reply is not None:
        messages.append({"role": "assistant", "content": _without_marks(example.reply)})
    return messages


def _without_marks(text: str) -> str:
    return _MARK.sub(r"[\1]", text)


_SWIFT_PLUGIN = '''"""Registers MedThink's reward with ms-swift as `medthink`."""

from swift.rewards import ORM, orms

from medthink.bridges.trainers import reward_completions


class MedThinkReward(ORM):
    def __call__(self, completions, solution, **kwargs):
        return reward_completions(completions, solution)


orms["medthink"] = MedThinkReward
'''
_VERL_REWARD = '''"""MedThink's reward for verl, as its custom reward function `compute_score`."""

from medthink.bridges.trainers import compute_score

__all__ = ["compute_score"]
'''
_LOAD = 'load_dataset("parquet", data_files="train.parquet", split="train")'
TRAINERS: dict[str, TrainerForm] = {
    "neutral": TrainerForm(
        ("sft", "rl"),
        "train.jsonl",
        _write_neutral,
        {
            "sft": "`train.jsonl`: one example per line; `messages` of typed parts, image paths from this folder.",
            "rl": "`train.jsonl`: one prompt per line; `solution` is what `medthink.reward` compares a reply with.",
        },
    ),
    "trl": TrainerForm(
        ("sft", "rl"),
        "train.parquet",
        _write_trl,
        {
            "sft": f"Load with `{_LOAD}` and hand it to `SFTTrainer`; the loss is on the completion.",
            "rl": (
                f"Load with `{_LOAD}` and hand it to `GRPOTrainer(reward_funcs=reward_completions, …)` with "
                "`from medthink.bridges.trainers import reward_completions`."
            ),
        },
    ),
    "verl": TrainerForm(
        ("sft", "rl"),
        "train.parquet",
        _write_verl,
        {
            "sft": "`data.train_files=train.parquet data.messages_key=messages` of verl's multi-turn SFT trainer.",
            "rl": (
                "`data.train_files=train.parquet data.image_key=images custom_reward_function.path=reward.py "
                "custom_reward_function.name=compute_score`."
            ),
        },
    ),
    "ms-swift": TrainerForm(
        ("sft", "rl"),
        "train.jsonl",
        _write_swift,
        {
            "sft": "`ROOT_IMAGE_DIR=THIS_FOLDER swift sft --dataset train.jsonl …`",
            "rl": (
                "`ROOT_IMAGE_DIR=THIS_FOLDER swift rlhf --rlhf_type grpo --dataset train.jsonl "
                "--external_plugins reward.py --reward_funcs medthink …`"
            ),
        },
    ),
    "llama-factory": TrainerForm(
        ("sft",),
        "train.jsonl",
        _write_llama_factory,
        {"sft": "`llamafactory-cli train … --dataset medthink --dataset_dir THIS_FOLDER --media_dir THIS_FOLDER`"},
    ),
}


def reward_completions(completions: Sequence[Any], solution: Sequence[str], **_: Any) -> list[float]:
    """The reward of each completion, a string or a list of messages: for TRL's GRPOTrainer and ms-swift."""
    pairs = zip(completions, solution, strict=True)
    return [reward_by_key(_read_key(key), _text_of(completion)).total for completion, key in pairs]


def compute_score(
    data_source: str,  # noqa: ARG001
    solution_str: str | None,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,  # noqa: ARG001
    **_: Any,
) -> dict[str, float]:
    """The reward of one reply, with values for verl's log."""
    earned = reward_by_key(_read_key(ground_truth), solution_str or "")
    # Not the process: verl averages numbers over all replies, and some have none.
    return {"score": earned.total, "letter": earned.letter, "parsed": float(earned.state == "ok")}


def _read_key(text: str) -> RewardKey:
    try:
        return msgspec.json.decode(text.encode(), type=RewardKey)
    except msgspec.DecodeError as error:
        raise DataError(f"not a reward key: {error}", remedy="export again with --format rl") from None


def _text_of(completion: Any) -> str:
    """A plain text, or that of a message or the last of several, whose content may be in parts; "" if there is none."""
    if isinstance(completion, list | tuple):
        completion = completion[-1] if completion else None
    if isinstance(completion, Mapping):
        completion = completion.get("content")
    if isinstance(completion, str):
        return completion
    parts = completion if isinstance(completion, list | tuple) else ()
    return "".join(part.get("text") or "" for part in parts if isinstance(part, Mapping))
