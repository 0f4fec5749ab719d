"""`medthink.reward` with the signatures that trainers expect of a reward function."""

from collections.abc import Sequence
from typing import Any

import msgspec

from medthink.core.errors import DataError
from medthink.scoring.reward import RewardKey, reward_by_key


def reward_completions(completions: Sequence[Any], solution: Sequence[str], **_: Any) -> list[float]:
    """The reward of each completion, a text or a list of messages: for TRL's GRPOTrainer and ms-swift."""
    pairs = zip(completions, solution, strict=True)
    return [reward_by_key(_read_key(key), _text_of(completion)).total for completion, key in pairs]


def compute_score(
    data_source: str,  # noqa: ARG001
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,  # noqa: ARG001
    **_: Any,
) -> dict[str, float]:
    """The reward of one reply, and what verl logs with it: for verl."""
    earned = reward_by_key(_read_key(ground_truth), solution_str)
    # Not the process: verl averages numbers over all replies, and some have none.
    return {"score": earned.total, "letter": earned.letter, "parsed": float(earned.state == "ok")}


def _read_key(text: str) -> RewardKey:
    try:
        return msgspec.json.decode(text.encode(), type=RewardKey)
    except msgspec.DecodeError as error:
        raise DataError(f"not a reward key: {error}", remedy="export again with --for rl") from None


def _text_of(completion: Any) -> str:
    """The text of a completion: a plain text, or the last message, whose content may be in parts."""
    if isinstance(completion, str):
        return completion
    content = completion[-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
