"""Verdicts, each bound by id to what it is about; every kind of judging adds its own fields."""

from typing import Literal

import msgspec

UnjudgedKind = Literal[
    "too_many",
    "unsplit",
    "not_json",
    "wrong_form",
    "wrong_call",
    "wrong_ids",
    "contradictory",
    "refused",
    "truncated",
    "failed",
    "no_majority",
    "no_quorum",
]


class UnitVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a judge says about one item, and why."""

    id: str
    reason: str


class Unjudged(msgspec.Struct, frozen=True):
    """Why there is no verdict; never counted as one."""

    kind: UnjudgedKind
    detail: str
