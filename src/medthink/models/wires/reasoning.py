"""Reasoning that a model writes into its text before the answer, between marks: split off, as vLLM and llama.cpp do."""

from typing import NamedTuple

# Opening and closing marks of the families that write them, in lower case.
MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<unused94>", "<unused95>"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
    ("<seed:think>", "</seed:think>"),
)


class SplitText(NamedTuple):
    """A reply's text in two."""

    reasoning: str
    answer: str


def split_reasoning(text: str) -> SplitText:
    """The reasoning at the beginning of a text, and the answer after it.

    A chat template often writes the opening mark into the prompt, so that the text has the closing one alone. Where the
    reasoning never ends there is no answer. An answer in JSON may quote a mark: it is no reasoning.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few characters change length in lower case; then only marks written exactly so are found.
        lowered = text
    begin = len(text) - len(text.lstrip())
    if lowered.startswith("{", begin):
        return SplitText("", text)
    for opening, closing in MARKS:
        is_opened = lowered.startswith(opening, begin)
        end = lowered.find(closing)
        if is_opened and end < 0:
            return SplitText(text[begin + len(opening) :].strip(), "")
        if is_opened or (end >= 0 and opening not in lowered[:end]):
            start = begin + len(opening) if is_opened else begin
            return SplitText(text[start:end].strip(), text[end + len(closing) :].lstrip())
    return SplitText("", text)
