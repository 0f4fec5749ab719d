"""How a condition shows a case to a model: the question, and the expert's cues if any."""

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.workflow.condition import Condition
from medthink.workflow.cues import NO_CUES, Cues, expert_cues
from medthink.workflow.subset import donors
from medthink.workflow.view import Shown, apply


class Showing:
    """A condition over a benchmark's split, which provides the images if they are swapped."""

    def __init__(self, condition: Condition, benchmark: Benchmark) -> None:
        self._condition = condition
        self._benchmark = benchmark
        self._donors = donors([case.id for case in benchmark], condition.seed) if condition.swap_images else {}

    def show(self, case: Case) -> tuple[Shown, Cues]:
        """The case as shown, and the cues that go with it."""
        shown = self._apply(case)
        cues = NO_CUES if self._condition.is_unaided else expert_cues(case.reference, self._condition, shown)
        return shown, cues

    def _apply(self, case: Case) -> Shown:
        if not self._condition.swap_images:
            return apply(self._condition, case.question)
        other = self._benchmark.case(self._donors[case.id])
        return apply(self._condition, case.question, other.question)
