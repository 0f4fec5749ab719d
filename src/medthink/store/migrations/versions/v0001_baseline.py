"""The tables of the first release: the board, its accounts, and the reading room."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    _create_benchmarks()
    _create_submissions()
    _create_measures()
    _create_accounts()
    _create_keys()
    _create_passing()
    _create_answers()
    _create_studies()
    _create_sittings()
    _create_marks()


def _create_benchmarks() -> None:
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
    op.create_table(
        "rivals",
        sa.Column("benchmark_id", sa.Integer, sa.ForeignKey("benchmarks.id"), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("source", sa.String(40), nullable=False),
        sa.Column("letters", sa.JSON, nullable=False),
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
        sa.Column("sent_by", sa.String(100), nullable=False),
        sa.Column("lease_at", sa.String(20)),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("progress", sa.JSON),
        sa.Column("preview", sa.JSON),
        sa.Column("annotation", sa.String, nullable=False),
        sa.Column("flag", sa.String, nullable=False),
        sa.UniqueConstraint("benchmark_id", "team_id", "file_sha256"),
    )


def _create_measures() -> None:
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
    op.create_table(
        "measures",
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id"), primary_key=True),
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), nullable=False, unique=True),
        sa.Column("shown_name", sa.String(200), nullable=False),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id"), index=True),
        sa.Column("roles", sa.JSON, nullable=False),
        sa.Column("password", sa.String(300)),
        sa.Column("added_at", sa.String(20), nullable=False),
        sa.Column("disabled_at", sa.String(20)),
    )
    op.create_table(
        "identities",
        sa.Column("issuer", sa.String(300), primary_key=True),
        sa.Column("subject", sa.String(300), primary_key=True),
        _account(nullable=False),
        sa.Column("added_at", sa.String(20), nullable=False),
    )


def _account(*, nullable: bool) -> sa.Column[int]:
    return sa.Column("account_id", sa.Integer, sa.ForeignKey("accounts.id"), nullable=nullable, index=True)


def _create_keys() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        _account(nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("hint", sa.String(20), nullable=False),
        sa.Column("label", sa.String(200), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("expires_at", sa.String(20), nullable=False),
        sa.Column("used_at", sa.String(20)),
        sa.Column("revoked_at", sa.String(20)),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        _account(nullable=True),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id")),
        sa.Column("roles", sa.JSON, nullable=False),
        sa.Column("note", sa.String(200), nullable=False),
        sa.Column("made_by", sa.String(200), nullable=False),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("expires_at", sa.String(20), nullable=False),
        sa.Column("used_at", sa.String(20)),
        sa.Column("revoked_at", sa.String(20)),
    )


def _create_passing() -> None:
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        _account(nullable=False),
        sa.Column("made_at", sa.String(20), nullable=False),
        sa.Column("seen_at", sa.String(20), nullable=False),
        sa.Column("expires_at", sa.String(20), nullable=False),
    )
    op.create_table(
        "attempts",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("since", sa.String(20), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
    )
    op.create_table(
        "flows",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("provider", sa.String(100), nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("expires_at", sa.String(20), nullable=False),
    )


def _create_answers() -> None:
    op.create_table("openings", *_case_columns(), sa.Column("at", sa.Float, nullable=False))
    op.create_table(
        "answers",
        *_case_columns(),
        sa.Column("letter", sa.String(1)),
        sa.Column("confidence", sa.Integer),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )


def _case_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("reader", sa.String(40), primary_key=True),
        sa.Column("benchmark", sa.String(64), primary_key=True),
        sa.Column("case_id", sa.Integer, primary_key=True),
    ]


def _create_studies() -> None:
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


def _create_marks() -> None:
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
