"""Taking a finding out of a text, wherever it is mentioned."""

import re
from collections.abc import Sequence

from medthink.metrics.findings import compare_findings

# A sentence that begins like this refers to the one before it.
_REFERS_BACK = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|she|both|however|moreover|also"
    r"|the (?:lesion|mass|finding|latter|same|tumou?r))\b",
    re.IGNORECASE,
)


def delete_finding(sentences: Sequence[str], finding: str) -> tuple[str, ...] | None:
    """The sentences that do not mention the finding; None if none does, none is left, or one loses its reference."""
    mentions = [_mentions(sentence, finding) for sentence in sentences]
    orphaned = any(
        gone and not mentions[place] and _REFERS_BACK.match(sentences[place])
        for place, gone in enumerate(mentions[:-1], start=1)
    )
    kept = tuple(sentence for sentence, gone in zip(sentences, mentions, strict=True) if not gone)
    return kept if any(mentions) and kept and not orphaned else None


def _mentions(sentence: str, finding: str) -> bool:
    compared = compare_findings(finding, sentence)
    return sentence == finding or bool(compared.matched or compared.conflicts)
