"""`medthink curate`: raw teaching cases into a benchmark, stage by stage or as a plan."""

import click

from medthink.cli.lazy import LazyGroup
from medthink.curate.registry import STAGES


class _StageGroup(LazyGroup):
    """The commands of the table, and one for each stage of the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Build and review first, then the stages in their order."""
        return [*super().list_commands(ctx), *STAGES]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A stage by its name, else a command of the table."""
        if args[0] in STAGES:
            return args[0], self.get_command(ctx, args[0]), args[1:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, made or imported on demand."""
        if name in STAGES:
            from medthink.cli.curate_stage import stage_command

            return stage_command(name)
        return super().get_command(ctx, name)


@click.group(
    cls=_StageGroup,
    modules={"build": "medthink.cli.curate_build", "review": "medthink.cli.curate_review"},
)
def curate() -> None:
    """Turn raw teaching cases into a benchmark, stage by stage or as a plan.

    Every stage writes new files and a log of its decisions; none touches its input.

    Example: medthink curate build plan.toml
    """
