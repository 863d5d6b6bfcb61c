"""All settings of an operator."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any

from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import nearest, visible
from schemas.disk import read_bytes

PREFIX = "LDPKIT_"
# Characters that a header carries unchanged.
PRINTABLE = frozenset(map(chr, range(0x21, 0x7F)))
# prometheus_client's own name: the folder where the counts of several processes meet.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# `ldpkit init` writes it, and every command that starts in its folder reads it.
FILE_NAME = "ldpkit.toml"
TOKEN_VARIABLE = PREFIX + "TOKEN"
# Not settings: the settings file, the folder of compiled programs, and data of tests and benchmarks.
OTHER_VARIABLES = ("CONFIG", "CACHE", "DATA")
# Scheme, host and port of an origin, as browsers send it in Origin.
ORIGIN = re.compile(r"(https?)://([a-z0-9]+(?:[-.]+[a-z0-9]+)*|\[[0-9a-f:]+\])(?::([1-9][0-9]{0,4}))?")
PORTS = {"http": "80", "https": "443"}
# The URL of an SQLite file with a relative path.
RELATIVE = re.compile(r"(sqlite(?:\+\w+)?:///)(?![/:?]|file:)(.+)")
# The shortest secret: a token has all rights, and an attacker may try five a second.
FEWEST_CHARACTERS = 16
MOST_DAYS = 36_500


def _text(value: object) -> str:
    # A value in a file that is not text, such as `false` for none, would be a secret that anyone can guess.
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError("a text in quotes")
    return os.fspath(value)


def _secret(value: object) -> str:
    text = _text(value)
    if len(text) < FEWEST_CHARACTERS:
        raise ValueError(f"of at least {FEWEST_CHARACTERS} characters: `ldpkit init` makes a random one")
    return text


def _token(value: object) -> str:
    if not PRINTABLE.issuperset(_text(value)):
        raise ValueError("printable ASCII without spaces, to travel in a header")
    return _secret(value)


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        text = str(value)
        if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def _number(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not isfinite(number) or number < 0:
        raise ValueError("a number and not negative")
    return number


def _flag(value: object) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise ValueError("true or false")
    return text in ("true", "1")


def _origins(value: object) -> tuple[str, ...]:
    """Return a list of origins; one text may have commas or blanks between them."""
    texts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)):
        raise ValueError('texts, such as ["https://survey.example.org"]')
    for text in texts:
        match = ORIGIN.fullmatch(str(text))
        if match is None or PORTS[match[1]] == match[3]:
            raise ValueError(
                "sites as browsers name them, such as https://survey.example.org: in small letters, without "
                f"a path, an ending / or the usual port; not {visible(str(text)[:64])}"
            )
        if match[1] == "http" and match[2].strip("[]") not in LOOPBACK:
            raise ValueError(f"https: anybody on the network could be {text}")
    return tuple(texts)


def _setting(default: object, read: Callable[[object], object], text: str) -> Any:
    return field(default=default, metadata={"read": read, "help": text})


@dataclass(frozen=True)
class Settings:
    """One collector's settings; each field's metadata describes it.

    Raises:
        UsageError: a value makes no sense.
    """

    database: str = _setting(
        "sqlite:///ldpkit.sqlite3", _text, "an SQLAlchemy URL; a relative path starts at the file's folder"
    )
    token: str | None = _setting(None, _token, "may do everything; without one, only keys can act")
    body_limit: int = _setting(1 << 20, _whole(1, 1 << 40), "bytes of the largest body, also inflated")
    lock_timeout: float = _setting(
        2.0, _number, "seconds that a write waits for a locked database; a commit may take 3 s more"
    )
    grace_days: int = _setting(
        7, _whole(0, MOST_DAYS), "days after `closes` on which reports are taken, until the `retention` ends"
    )
    upload_rate: float = _setting(0.0, _number, "reports a second to one study, in a process; 0 for no limit")
    ticket_key: str | None = _setting(
        None, _secret, "hides which ticket let which report in; the same on all machines"
    )
    cors_origins: tuple[str, ...] = _setting(
        (), _origins, "sites whose pages may send reports; they see answers before the noise"
    )
    frame_ancestors: tuple[str, ...] = _setting(
        (), _origins, "sites whose pages may frame a study's page; they never learn answers"
    )
    logo: str | None = _setting(
        None, _text, "an image above studies: SVG, PNG, JPEG or WebP, at most 256 KiB"
    )
    ohttp_keys: str | None = _setting(None, _text, "a file of a gateway's keys, for relays")
    require_ohttp: bool = _setting(False, _flag, "refuse devices that come without a relay")

    @property
    def patience(self) -> float:
        """Seconds that a commit, or the wait for a connection, may take before a request gets 503."""
        return self.lock_timeout + 3.0

    @property
    def ticket_secret(self) -> bytes:
        """The ticket_key's bytes; b"" without a key."""
        return (self.ticket_key or "").encode()

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if value is not None:
                try:
                    value = setting.metadata["read"](value)
                except ValueError as error:
                    # Without the value, which may be a secret.
                    raise UsageError(
                        f"setting {setting.name}: must be {error}", code="settings.wrong_value"
                    ) from None
                object.__setattr__(self, setting.name, value)
        if self.require_ohttp and not self.ohttp_keys:
            raise UsageError(
                "setting require_ohttp: needs ohttp_keys, from `ldpkit ohttp FILE --rotate`",
                code="settings.require_ohttp_needs_keys",
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Settings:
        """Make settings from a mapping by name; None keeps a default. Raises UsageError for unknown names."""
        known = [setting.name for setting in fields(cls)]
        for name in values:
            if name not in known:
                raise UsageError(
                    f"unknown setting {name!r}: {_advice(name, known)}", code="settings.unknown_setting"
                )
        return cls(**{name: value for name, value in values.items() if value is not None})

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read settings from LDPKIT_ and a setting's name in capitals; they override those in a file.

        LDPKIT_CONFIG names the file, else it is ldpkit.toml in the current folder if there is one.
        LDPKIT_TOKEN does not override its token: clients send that variable, and it may be any key.

        Args:
            environment: the variables.

        Raises:
            InputError: a value or a name is wrong, or the file cannot be read.
        """
        refuse_unknown_variables(environment)
        file = settings_file(environment)
        values: dict[str, object] = {} if file is None else _read_file(file)
        for setting in fields(cls):
            value = environment.get(PREFIX + setting.name.upper())
            if value is not None and (setting.name != "token" or "token" not in values):
                values[setting.name] = value
        return cls.from_mapping(values)


def server_settings() -> Settings:
    """Return `Settings.load` for a server.

    Raises:
        InputError: as `load`, and if LDPKIT_TOKEN is not the server's token.
    """
    settings = Settings.load()
    if os.environ.get(TOKEN_VARIABLE) not in (None, settings.token):
        raise InputError(
            f"{TOKEN_VARIABLE} is not the token of {settings_file(os.environ)}: clients send it as well, so "
            "unset it here, or take the token out of the file",
            code="settings.token_variable_differs",
        )
    return settings


def refuse_unknown_variables(environment: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError for an unknown LDPKIT_… variable: a typing error would silently leave the default."""
    known = [*(setting.name.upper() for setting in fields(Settings)), *OTHER_VARIABLES]
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if variable != name and name not in known:
            raise UsageError(
                f"no setting is called {visible(variable[:64])}: {_advice(name, known, PREFIX)}",
                code="settings.unknown_variable",
            )


def _advice(name: str, known: Sequence[str], prefix: str = "") -> str:
    """Return a question or sentence that leads from an unknown name to the right one."""
    near = nearest(name, known)
    return f"did you mean {prefix}{near}?" if near else "docs/operate.md lists the settings"


def settings_file(environment: Mapping[str, str]) -> Path | None:
    """Return the settings file, if there is one."""
    named = environment.get(PREFIX + "CONFIG") or (FILE_NAME if os.path.exists(FILE_NAME) else None)
    return Path(named) if named else None


def _read_file(path: Path) -> dict[str, object]:
    """Return a file's settings. Its relative paths are in its folder, which may be moved or copied."""
    try:
        values = tomllib.loads(read_bytes(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}", code="settings.not_toml") from None
    # Values that are not texts are refused later by name, like other settings.
    database = values.get("database")
    if isinstance(database, str) and (match := RELATIVE.fullmatch(database)):
        values["database"] = f"{match[1]}{os.path.abspath(path.parent / match[2])}"
    for name in ("logo", "ohttp_keys"):
        if isinstance(file := values.get(name), str):
            values[name] = str(path.parent / file)
    return values
