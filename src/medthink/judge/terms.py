"""How judges are asked, and the limits on cost, whatever they judge."""

from medthink.judge.evidence import DEFAULT_SIGHT, Sight
from medthink.judge.judgement import Setting
from medthink.models.request import Effort
from medthink.runs.spec import CallTerms


class JudgeTerms(CallTerms, frozen=True, kw_only=True):
    """Who judges, which parts of a case they see, the parameters of their calls, and the limits."""

    judges: tuple[str, ...]
    sees: tuple[Sight, ...] = DEFAULT_SIGHT
    effort: Effort | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    use_schema: bool = True

    @property
    def setting(self) -> Setting:
        """How every judge of the session is asked."""
        return Setting(
            sees=self.sees,
            effort=self.effort,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            use_schema=self.use_schema,
        )
