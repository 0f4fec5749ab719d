"""A person as the store knows them."""

import msgspec

from medthink.accounts.roles import GivenRole, Role, includes


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is; the password is not part of it."""

    id: int
    name: str
    shown_name: str
    team: str | None
    roles: tuple[GivenRole, ...]
    added_at: str
    disabled_at: str | None
    has_password: bool

    def may(self, role: Role) -> bool:
        """Whether this person may do what the role may."""
        return self.disabled_at is None and includes(self.roles, role)
