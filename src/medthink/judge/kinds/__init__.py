"""The kinds of judging. To add one: a module here, a prompt of the same name, and its line in `KINDS`."""

from typing import Any

from medthink.judge.kinds.discussion import DiscussionKind
from medthink.judge.kinds.findings import FindingsKind
from medthink.judge.kinds.kind import JudgeKind
from medthink.judge.kinds.omissions import OmissionsKind
from medthink.judge.kinds.preference import PreferenceKind
from medthink.judge.kinds.steps import StepsKind

KINDS: dict[str, JudgeKind[Any, Any]] = {
    kind.name: kind
    for kind in (
        StepsKind(),
        DiscussionKind(),
        FindingsKind(),
        OmissionsKind(),
        PreferenceKind(),
    )
}
