"""Rivals of every benchmark, and what is known of a submission beside its scores."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "rivals",
        sa.Column("benchmark_id", sa.Integer, sa.ForeignKey("benchmarks.id"), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("source", sa.String(40), nullable=False),
        sa.Column("letters", sa.JSON, nullable=False),
    )
    op.create_table(
        "measures",
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id"), primary_key=True),
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
