"""The first tables: benchmarks, teams, files, submissions, scores, events, rankings."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "benchmarks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("split", sa.String(100), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("text_fingerprint", sa.String(64), nullable=False, unique=True),
        sa.Column("n_cases", sa.Integer, nullable=False),
        sa.Column("added_at", sa.String(20), nullable=False),
    )
    op.create_table(
        "teams",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("added_at", sa.String(20), nullable=False),
    )
    op.create_table(
        "files",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    _create_submissions()
    op.create_table(
        "scores",
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id"), primary_key=True),
        sa.Column("scorer", sa.String(20), primary_key=True),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("scores", sa.JSON, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id"), index=True),
        sa.Column("at", sa.String(20), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("what", sa.String(40), nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
    )
    op.create_table(
        "rankings",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("ranking", sa.JSON, nullable=False),
    )


def _create_submissions() -> None:
    op.create_table(
        "submissions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("token", sa.String(32), nullable=False, unique=True),
        sa.Column("benchmark_id", sa.Integer, sa.ForeignKey("benchmarks.id"), nullable=False),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("file_sha256", sa.String(64), sa.ForeignKey("files.sha256")),
        sa.Column("status", sa.String(20), nullable=False, index=True),
        sa.Column("status_at", sa.String(20), nullable=False),
        sa.Column("deadline_at", sa.String(20)),
        sa.Column("detail", sa.String, nullable=False),
        sa.Column("provenance", sa.String(20), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("about", sa.JSON, nullable=False),
        sa.Column("problems", sa.JSON, nullable=False),
        sa.Column("received_at", sa.String(20), nullable=False),
        sa.Column("published_at", sa.String(20)),
        sa.Column("withdrawn_at", sa.String(20)),
        sa.Column("allows_download", sa.Boolean, nullable=False),
        sa.UniqueConstraint("benchmark_id", "team_id", "file_sha256"),
    )
