"""The tables of the board's store, the same on SQLite and PostgreSQL.

Times are UTC strings (`2026-01-31T12:00:00Z`), which sort by time. Nothing is ever deleted: what is withdrawn keeps
its row, and `events` only grows. The tables in `PASSING` hold short-lived data (minutes or days) and are not backed up.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token", String(32), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("plan", JSON, nullable=False),
    Column("key", JSON, nullable=False),
    Column("made_by", String(200), nullable=False),
    Column("made_at", String(20), nullable=False),
    Column("closed_at", String(20)),
)

# `name` is that of the account that reads; `alias` is the pseudonym used where names are not shown.
study_readers = Table(
    "study_readers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False, index=True),
    Column("name", String(100), nullable=False),
    Column("alias", String(20), nullable=False),
    Column("is_adjudicator", Boolean, nullable=False),
    Column("training", JSON, nullable=False),
    Column("trained_at", String(20)),
    Column("revoked_at", String(20)),
    UniqueConstraint("study_id", "name"),
)

# `frozen` has the two readings that an adjudicator sees, and is null for every other sitting.
sittings = Table(
    "sittings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False, index=True),
    Column("reader_id", Integer, ForeignKey("study_readers.id"), nullable=False, index=True),
    Column("place", Integer, nullable=False),
    Column("code", String(40), nullable=False),
    Column("case_id", Integer, nullable=False),
    Column("units", Integer, nullable=False),
    Column("content", JSON, nullable=False),
    Column("frozen", JSON),
    Column("opened_at", String(20)),
    Column("letter", String(1)),
    Column("confidence", Integer),
    Column("case_seconds", Float),
    Column("committed_at", String(20)),
    Column("submitted_at", String(20)),
    Column("holder", String(40)),
    Column("held_until", String(20)),
    UniqueConstraint("study_id", "code"),
)

marks = Table(
    "marks",
    metadata,
    Column("sitting_id", Integer, ForeignKey("sittings.id"), primary_key=True),
    Column("item", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("cells", JSON, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("saved_at", String(20), nullable=False),
)

mark_events = Table(
    "mark_events",
    metadata,
    Column("sitting_id", Integer, ForeignKey("sittings.id"), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("item", String(40), nullable=False),
    Column("version", Integer, nullable=False),
    Column("cells", JSON, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("saved_at", String(20), nullable=False),
)


benchmarks = Table(
    "benchmarks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("split", String(100), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("text_fingerprint", String(64), nullable=False, unique=True),
    Column("n_cases", Integer, nullable=False),
    Column("added_at", String(20), nullable=False),
)

# `key` is what all spellings of a team's name have in common (`core.names.name_key`).
teams = Table(
    "teams",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("key", String(400), nullable=False, unique=True),
    Column("added_at", String(20), nullable=False),
)

# The bytes of every upload, compressed; the same bytes are kept once.
files = Table(
    "files",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# `detail` has the doubts of the check, `reason` why a submission is in its state; `lease` names the check under way.
submissions = Table(
    "submissions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token", String(32), nullable=False, unique=True),
    Column("benchmark_id", ForeignKey("benchmarks.id"), nullable=False),
    Column("team_id", ForeignKey("teams.id"), nullable=False),
    Column("file_sha256", ForeignKey("files.sha256")),
    Column("status", String(20), nullable=False, index=True),
    Column("status_at", String(20), nullable=False),
    Column("deadline_at", String(20)),
    Column("detail", String, nullable=False, default=""),
    Column("reason", String, nullable=False, default="", server_default=""),
    Column("provenance", String(20), nullable=False),
    Column("model", String(200), nullable=False),
    Column("about", JSON, nullable=False),
    Column("problems", JSON, nullable=False),
    Column("received_at", String(20), nullable=False),
    Column("published_at", String(20)),
    Column("withdrawn_at", String(20)),
    Column("allows_download", Boolean, nullable=False, default=False),
    Column("sent_by", String(100), nullable=False, default=""),
    Column("lease", String(32)),
    Column("lease_at", String(20)),
    Column("tries", Integer, nullable=False, default=0),
    Column("progress", JSON),
    Column("preview", JSON),
    Column("annotation", String, nullable=False, default=""),
    Column("flag", String, nullable=False, default=""),
    UniqueConstraint("benchmark_id", "team_id", "file_sha256"),
)

# One row per scorer version: a new scorer adds a row and leaves the old one.
scores = Table(
    "scores",
    metadata,
    Column("submission_id", ForeignKey("submissions.id"), primary_key=True),
    Column("scorer", String(20), primary_key=True),
    Column("made_at", String(20), nullable=False),
    Column("scores", JSON, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("submission_id", ForeignKey("submissions.id"), index=True),
    Column("at", String(20), nullable=False),
    Column("actor", String(200), nullable=False),
    Column("what", String(40), nullable=False),
    Column("detail", JSON, nullable=False),
)

# A ranking is computed once for each set of scores, keyed by the digest of its inputs.
rankings = Table(
    "rankings",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("made_at", String(20), nullable=False),
    Column("ranking", JSON, nullable=False),
)

# People. Only digests of credentials (password, session, token, link) are stored.
accounts = Table(
    "accounts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("shown_name", String(200), nullable=False),
    Column("team_id", ForeignKey("teams.id"), index=True),
    Column("roles", JSON, nullable=False),
    Column("password", String(300)),
    Column("added_at", String(20), nullable=False),
    Column("disabled_at", String(20)),
)

# External identities: the provider's address, and its name for the person.
identities = Table(
    "identities",
    metadata,
    Column("issuer", String(300), primary_key=True),
    Column("subject", String(300), primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("added_at", String(20), nullable=False),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("hint", String(20), nullable=False),
    Column("label", String(200), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("made_at", String(20), nullable=False),
    Column("expires_at", String(20), nullable=False),
    Column("used_at", String(20)),
    Column("revoked_at", String(20)),
)

# A link that creates an account or, if it names one, signs in to it.
invitations = Table(
    "invitations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("account_id", ForeignKey("accounts.id"), index=True),
    Column("team_id", ForeignKey("teams.id")),
    Column("roles", JSON, nullable=False),
    Column("note", String(200), nullable=False),
    Column("made_by", String(200), nullable=False),
    Column("made_at", String(20), nullable=False),
    Column("expires_at", String(20), nullable=False),
    Column("used_at", String(20)),
    Column("revoked_at", String(20)),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("made_at", String(20), nullable=False),
    Column("seen_at", String(20), nullable=False),
    Column("expires_at", String(20), nullable=False),
)

# Counts of recent attempts, to slow down guessing.
attempts = Table(
    "attempts",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("since", String(20), nullable=False),
    Column("count", Integer, nullable=False),
)

# Sign-ins in progress at a provider.
flows = Table(
    "flows",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("provider", String(100), nullable=False),
    Column("detail", JSON, nullable=False),
    Column("expires_at", String(20), nullable=False),
)

# When a reader of the case explorer first saw a case, and what that reader committed to. `source` is the account, or a
# digest of the browser, the address and the day's secret; `seconds` is null if the first look was not recorded.
openings = Table(
    "openings",
    metadata,
    Column("reader", String(40), primary_key=True),
    Column("benchmark", String(64), primary_key=True),
    Column("case_id", Integer, primary_key=True),
    Column("at", Float, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("reader", String(40), primary_key=True),
    Column("benchmark", String(64), primary_key=True),
    Column("case_id", Integer, primary_key=True),
    Column("letter", String(1)),
    Column("confidence", Integer),
    Column("seconds", Float),
    Column("at", Float, nullable=False),
    Column("source", String(64), nullable=False),
)

# A day's secret is removed with the next day's first answer: then no digest can be traced to an address.
day_secrets = Table(
    "day_secrets",
    metadata,
    Column("day", String(10), primary_key=True),
    Column("secret", String(64), nullable=False),
)

# The letters of guessers that see no images, for every benchmark.
rivals = Table(
    "rivals",
    metadata,
    Column("benchmark_id", ForeignKey("benchmarks.id"), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("source", String(40), nullable=False),
    Column("letters", JSON, nullable=False),
    Column("made_at", String(20), nullable=False, default="", server_default=""),
)

# Measures of a submission that can be computed again, one row per kind: the gain over rivals.
measures = Table(
    "measures",
    metadata,
    Column("submission_id", ForeignKey("submissions.id"), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("made_at", String(20), nullable=False),
    Column("body", JSON, nullable=False),
)

PASSING = frozenset({sessions, attempts, flows, day_secrets})
