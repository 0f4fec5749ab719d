"""Keys of teams, leases and reasons of submissions, times of rivals, sources of people's answers."""

import sqlalchemy as sa
from alembic import op

from medthink.core.names import name_key

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; where two teams had one name, the later ones get a key with their number."""
    with op.batch_alter_table("submissions") as table:
        table.add_column(sa.Column("lease", sa.String(32)))
        table.add_column(sa.Column("reason", sa.String(), nullable=False, server_default=""))
    with op.batch_alter_table("rivals") as table:
        table.add_column(sa.Column("made_at", sa.String(20), nullable=False, server_default=""))
    with op.batch_alter_table("teams") as table:
        table.add_column(sa.Column("key", sa.String(400)))
    teams = sa.table("teams", sa.column("id"), sa.column("name"), sa.column("key"))
    connection = op.get_bind()
    taken: set[str] = set()
    for number, name in connection.execute(sa.select(teams.c.id, teams.c.name).order_by(teams.c.id)).all():
        key = name_key(name)
        key = f"{key} #{number}" if key in taken else key
        taken.add(key)
        connection.execute(teams.update().where(teams.c.id == number).values(key=key))
    with op.batch_alter_table("teams") as table:
        table.alter_column("key", existing_type=sa.String(400), nullable=False)
        table.create_unique_constraint("uq_teams_key", ["key"])
    _tell_sources_of_answers(connection)


def _tell_sources_of_answers(connection: sa.Connection) -> None:
    """Earlier answers have their reader as source; a time of exactly 0 was that of an answer without a first look."""
    with op.batch_alter_table("answers") as table:
        table.add_column(sa.Column("source", sa.String(64), nullable=True))
        table.alter_column("seconds", existing_type=sa.Float(), nullable=True)
    answers = sa.table("answers", sa.column("reader"), sa.column("seconds"), sa.column("source"))
    connection.execute(answers.update().values(source=answers.c.reader))
    connection.execute(answers.update().where(answers.c.seconds == 0).values(seconds=None))
    with op.batch_alter_table("answers") as table:
        table.alter_column("source", existing_type=sa.String(64), nullable=False)
    op.create_table(
        "day_secrets",
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("secret", sa.String(64), nullable=False),
    )
