"""Expert cues shown with a question: made from a reference, deliberately and only here."""

import msgspec

from medthink.cases.case import Reference
from medthink.core.errors import UsageError
from medthink.workflow.condition import Condition
from medthink.workflow.view import Shown


class Cues(msgspec.Struct, frozen=True):
    """What an expert said; None where the condition gives nothing. `findings` is parallel to the images shown."""

    findings: tuple[str, ...] | None = None
    summary: str | None = None


NO_CUES = Cues()


def expert_cues(reference: Reference, condition: Condition, shown: Shown) -> Cues:
    """The expert's words that the condition asks for; must not be called for an unaided condition."""
    if condition.is_unaided:
        raise UsageError("an unaided condition takes no expert cues", remedy="use NO_CUES")
    return Cues(
        findings=_captions(reference, shown) if condition.findings == "expert" else None,
        summary=reference.findings if condition.summary == "expert" else None,
    )


def _captions(reference: Reference, shown: Shown) -> tuple[str, ...]:
    """The captions of exactly the images shown, in the order shown."""
    return tuple(reference.images[position].caption for position in shown.positions)
