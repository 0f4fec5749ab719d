"""Submissions by others: who sent them, which worker holds them and how far it is, preview, notes of maintainers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("submissions") as table:
        table.add_column(sa.Column("sent_by", sa.String(100), nullable=False, server_default=""))
        table.add_column(sa.Column("lease_at", sa.String(20)))
        table.add_column(sa.Column("tries", sa.Integer, nullable=False, server_default="0"))
        table.add_column(sa.Column("progress", sa.JSON))
        table.add_column(sa.Column("preview", sa.JSON))
        table.add_column(sa.Column("annotation", sa.String, nullable=False, server_default=""))
        table.add_column(sa.Column("flag", sa.String, nullable=False, server_default=""))
