"""Logs of Inspect AI made with its own mock model, which says of each case what a test wants."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Say = Callable[[str, int], Any]


def mock_model(say: Say) -> Any:
    """A model that answers what `say` returns for a call's kind and text: a reply, or a reply and how it stopped."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(messages: list[Any], tools: Any, choice: Any, config: Any) -> Any:
        content = messages[-1].content
        images = 0 if isinstance(content, str) else sum(part.type == "image" for part in content)
        said = say(messages[-1].text, images)
        text, stop = said if isinstance(said, tuple) else (said, "stop")
        output = ModelOutput.from_content("mock-1", text, stop_reason=stop)
        output.usage = ModelUsage(input_tokens=90, input_tokens_cache_read=10, output_tokens=7, total_tokens=107)
        return output

    return get_model("mockllm/model", custom_outputs=answer)


def evaluate(task: str, folder: Path, say: Say, **options: Any) -> Any:
    """The log of an evaluation of one of our tasks, by its name."""
    from inspect_ai import eval as run_eval
    from inspect_ai.log import read_eval_log

    args = {"data": options.pop("data"), **options.pop("args", {})}
    (log,) = run_eval(
        f"medthink/{task}",
        task_args=args,
        model=mock_model(say),
        log_dir=str(folder),
        display="none",
        **options,
    )
    assert log.status == "success", log.error
    return read_eval_log(log.location, resolve_attachments=True)


def _number_of(text: str) -> int:
    return int(re.findall(r"number (\d+)", text)[0])


def answers(text: str, images: int) -> Any:
    """Right, wrong, unreadable, declined and cut off, by the case's number; 100 has the key A."""
    replies = {
        100: '{"answer": "A", "explanation": "Because."}',
        101: '{"answer": "A", "explanation": "Because."}',
        102: "I cannot say.",
        103: ("No.", "content_filter"),
        104: ("{", "max_tokens"),
    }
    return replies[_number_of(text)]
