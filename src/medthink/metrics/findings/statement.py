"""What a text states about one finding."""

from typing import Literal

import msgspec

Side = Literal["left", "right", "bilateral", "midline"]
Polarity = Literal["present", "absent"]
Certainty = Literal["certain", "uncertain"]
Change = Literal["new", "increased", "decreased", "stable", "resolved"]


class Statement(msgspec.Struct, frozen=True):
    """One finding, stated as present or absent; what the text leaves open is None."""

    finding: str
    polarity: Polarity = "present"
    certainty: Certainty = "certain"
    site: str | None = None
    side: Side | None = None
    size_mm: float | None = None
    change: Change | None = None
