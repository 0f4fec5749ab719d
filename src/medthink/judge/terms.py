"""How judges are asked, and the limits on cost, whatever they judge."""

from pathlib import Path

import msgspec

from medthink.judge.evidence import DEFAULT_SIGHT, Sight
from medthink.judge.judgement import Setting
from medthink.models.request import Effort


class JudgeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges, which parts of a case they see, the parameters of their calls, and the limits.

    With `batch`, models are asked by their providers' batches; without `wait` the session ends once everything is sent.
    """

    judges: tuple[str, ...]
    sees: tuple[Sight, ...] = DEFAULT_SIGHT
    effort: Effort | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    use_schema: bool = True
    base_urls: tuple[str, ...] = ()
    prices: Path | None = None
    max_usd: float | None = None
    max_calls: int | None = None
    preflight: bool = True
    batch: bool = False
    wait: bool = True

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
