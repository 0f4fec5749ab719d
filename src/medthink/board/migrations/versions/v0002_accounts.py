"""People: accounts, sessions, tokens, invitations, and the answers of those who read cases."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
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
    _create_keys()
    _create_passing()
    _create_answers()


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
