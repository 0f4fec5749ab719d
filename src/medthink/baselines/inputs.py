"""Which parts of a question a guesser is allowed to look at."""

from typing import Literal

# The options are always among them: there is nothing to rank without.
Inputs = Literal["options", "question", "images", "all"]


def sees_history(inputs: Inputs) -> bool:
    """Whether these inputs hold the history."""
    return inputs in ("question", "all")


def sees_images(inputs: Inputs) -> bool:
    """Whether these inputs hold the images."""
    return inputs in ("images", "all")
