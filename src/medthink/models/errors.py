"""Why a call failed, by kind.

kind             what happened                                              tried again
timeout          no whole reply in time                                     yes
rate_limit       the provider asks to slow down                             yes
server           the provider failed (5xx, overloaded)                      yes
connection       refused, reset or cut off                                  yes
invalid_reply    a reply that is no answer: HTML, empty, cut-off JSON       yes
oversized        a reply too large to be an answer; the rest is not read    once: it may be paid for
invalid_json     an answer came, but not the JSON that was asked for        yes, a few times: it is paid for
bad_request      the provider does not accept the request                   no
unsupported      a parameter, schema or image this model does not take      no
auth             the key is missing, wrong or not allowed                   no
quota            the account has no credit left                             no
content_filter   the provider refused to process the prompt                 no
unreachable      no server answered for as long as --patience allows        no: the run stops
expired          a batch ended before the provider came to this request     yes, in the next batch: it was not paid for
"""

from typing import Literal

from medthink.core.errors import OutsideError
from medthink.models.request import Usage

ErrorKind = Literal[
    "timeout",
    "rate_limit",
    "server",
    "connection",
    "invalid_reply",
    "oversized",
    "invalid_json",
    "bad_request",
    "unsupported",
    "auth",
    "quota",
    "content_filter",
    "unreachable",
    "expired",
]

RETRYABLE: frozenset[ErrorKind] = frozenset(
    {"timeout", "rate_limit", "server", "connection", "invalid_reply", "oversized", "invalid_json"}
)


class ModelError(OutsideError):
    """A call without an answer; `detail` is the server's message, shortened and without the key."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        remedy: str = "",
    ) -> None:
        where = f"{kind} (HTTP {status})" if status is not None else kind
        super().__init__(f"{where}: {detail}", remedy=remedy)
        self.kind = kind
        self.detail = detail
        self.status = status
        self.retry_after_s = retry_after_s
        self.usage = usage
        self.attempts = 0

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed when sent again."""
        return self.kind in RETRYABLE

    @property
    def advice(self) -> str:
        """The detail, and what to do about it."""
        return f"{self.detail} → {self.remedy}" if self.remedy else self.detail

    def __repr__(self) -> str:
        return f"ModelError({self.kind!r}, {self.detail!r})"
