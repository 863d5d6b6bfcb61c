"""Everything that an operator can set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from schemas.errors import InputError

PREFIX = "LDPKIT_"


@dataclass(frozen=True)
class Settings:
    """One collector's settings. Raises InputError when a value makes no sense.

    database: SQLAlchemy URL. token: what an operator sends to publish, close and export; without
    one, nobody can. body_limit: largest request body, in bytes. busy_timeout: how long a request
    waits for a locked database, in seconds.
    """

    database: str = "sqlite:///ldpkit.sqlite3"
    token: str | None = None
    body_limit: int = 16 << 20
    busy_timeout: float = 2.0

    def __post_init__(self) -> None:
        if self.token is not None and not self.token.strip():
            raise InputError("setting token: must not be empty")
        if self.body_limit <= 0:
            raise InputError(f"setting body_limit: must be above 0, is {self.body_limit}")
        if self.busy_timeout < 0:
            raise InputError(f"setting busy_timeout: must not be negative, is {self.busy_timeout}")

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """Settings by name; those left out keep their defaults. Raises InputError for unknown names."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise InputError(f"unknown setting {unknown[0]!r}")
        defaults = cls()
        token = values.get("token")
        return cls(
            database=str(values.get("database", defaults.database)),
            token=None if token is None else str(token),
            body_limit=_whole("body_limit", values.get("body_limit", defaults.body_limit)),
            busy_timeout=_number("busy_timeout", values.get("busy_timeout", defaults.busy_timeout)),
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Settings from LDPKIT_DATABASE, LDPKIT_TOKEN, LDPKIT_BODY_LIMIT and LDPKIT_BUSY_TIMEOUT."""
        names = [field.name for field in fields(cls)]
        found = {name: environment.get(PREFIX + name.upper()) for name in names}
        return cls.from_mapping({name: value for name, value in found.items() if value is not None})


def _whole(name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise InputError(f"setting {name}: {value!r} is not a whole number") from None


def _number(name: str, value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise InputError(f"setting {name}: {value!r} is not a number") from None
