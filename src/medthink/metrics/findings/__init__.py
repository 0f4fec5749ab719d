"""Finding-level agreement: which findings two texts state, and where they agree or conflict."""

from medthink.metrics.findings.agreement import Conflict, FindingAgreement, compare_findings, compare_statements
from medthink.metrics.findings.extract import extract_statements
from medthink.metrics.findings.lexicon import Lexicon, Statement, read_lexicon

VERSION = "8"

__all__ = [
    "VERSION",
    "Conflict",
    "FindingAgreement",
    "Lexicon",
    "Statement",
    "compare_findings",
    "compare_statements",
    "extract_statements",
    "read_lexicon",
]
