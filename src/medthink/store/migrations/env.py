"""Alembic's entry: the connection comes from `medthink.store.engine`, there is no configuration file."""

from alembic import context

from medthink.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
