"""Reasoning that a model leaves in its reply between tags: taken out before the reply is read."""

from medthink.workflow.outcome import Unparsed

# Opening and closing marks of the families that write them. A reply may hold the closing mark alone, where the
# opening one belonged to the prompt.
_MARKS = (
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


def drop_thinking(text: str) -> str | Unparsed:
    """The reply without its thinking, or Unparsed where the thinking never ends."""
    for opening, closing in _MARKS:
        rest = _drop(text, opening, closing)
        if rest is None:
            return Unparsed("the reply ends while still thinking")
        text = rest
    return text.strip()


def _drop(text: str, opening: str, closing: str) -> str | None:
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few characters change length in lower case; then only marks written exactly so are found.
        lowered = text
    kept: list[str] = []
    place = 0
    while (end := lowered.find(closing, place)) >= 0:
        start = lowered.find(opening, place, end)
        if start >= 0:
            kept.append(text[place:start])
        place = end + len(closing)
    if lowered.find(opening, place) >= 0:
        return None
    return "".join(kept) + text[place:]
