"""The tables of the first release, where migrations begin: a new store gets those of `medthink.store.tables`."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change nothing."""
