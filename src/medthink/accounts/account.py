"""A person in the store."""

import msgspec

from medthink.accounts.roles import GivenRole, Role, includes


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A person's account, without the password."""

    id: int
    name: str
    shown_name: str
    team: str | None
    roles: tuple[GivenRole, ...]
    added_at: str
    disabled_at: str | None
    has_password: bool

    def may(self, role: Role) -> bool:
        """Whether this person has the rights of a role."""
        return self.disabled_at is None and includes(self.roles, role)
