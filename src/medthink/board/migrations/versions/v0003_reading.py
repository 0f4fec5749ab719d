"""The reading room: studies, their readers, sittings, and marks with their history."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("token", sa.String(32), nullable=False, unique=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("key", sa.JSON, nullable=False),
        sa.Column("made_by", sa.String(200), nullable=False),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("closed_at", sa.String(20)),
    )
    op.create_table(
        "study_readers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), nullable=False, index=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("alias", sa.String(20), nullable=False),
        sa.Column("is_adjudicator", sa.Boolean, nullable=False),
        sa.Column("training", sa.JSON, nullable=False),
        sa.Column("trained_at", sa.String(20)),
        sa.Column("revoked_at", sa.String(20)),
        sa.UniqueConstraint("study_id", "name"),
    )
    _create_sittings()
    for table, key in (("marks", "item"), ("mark_events", "key")):
        op.create_table(
            table,
            sa.Column("sitting_id", sa.Integer, sa.ForeignKey("sittings.id"), primary_key=True),
            sa.Column(key, sa.String(64 if key == "key" else 40), primary_key=True),
            *([sa.Column("item", sa.String(40), nullable=False)] if key == "key" else []),
            sa.Column("version", sa.Integer, nullable=False),
            sa.Column("cells", sa.JSON, nullable=False),
            sa.Column("seconds", sa.Float, nullable=False),
            sa.Column("saved_at", sa.String(20), nullable=False),
        )


def _create_sittings() -> None:
    op.create_table(
        "sittings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), nullable=False, index=True),
        sa.Column("reader_id", sa.Integer, sa.ForeignKey("study_readers.id"), nullable=False, index=True),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("code", sa.String(40), nullable=False),
        sa.Column("case_id", sa.Integer, nullable=False),
        sa.Column("units", sa.Integer, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("frozen", sa.JSON),
        sa.Column("opened_at", sa.String(20)),
        sa.Column("letter", sa.String(1)),
        sa.Column("confidence", sa.Integer),
        sa.Column("case_seconds", sa.Float),
        sa.Column("committed_at", sa.String(20)),
        sa.Column("submitted_at", sa.String(20)),
        sa.Column("holder", sa.String(40)),
        sa.Column("held_until", sa.String(20)),
        sa.UniqueConstraint("study_id", "code"),
    )
