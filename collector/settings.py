"""All settings of an operator."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import read_bytes
from ldp_client.words.text import nearest, visible

if TYPE_CHECKING:
    from sqlalchemy import URL

PREFIX = "LDPKIT_"
# Characters that a header carries unchanged.
PRINTABLE = frozenset(map(chr, range(0x21, 0x7F)))
# prometheus_client's own name: the folder where the counts of several processes meet.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# `ldpkit init` writes it, and every command that starts in its folder reads it.
FILE_NAME = "ldpkit.toml"
TOKEN_VARIABLE = PREFIX + "TOKEN"
# Not settings: the settings file, the folder of compiled programs, and data of tests and benchmarks.
_OTHER_VARIABLES = ("CONFIG", "CACHE", "DATA")
_OF_A_FAILING_DISK = PREFIX + "DISK_"
# Scheme, host and port of an origin, as browsers send it in Origin.
ORIGIN = re.compile(r"(https?)://([a-z0-9]+(?:[-.]+[a-z0-9]+)*|\[[0-9a-f:]+\])(?::([1-9][0-9]{0,4}))?")
PORTS = {"http": "80", "https": "443"}
# The shortest token: it has all rights, and an attacker may try five a second. Also for an invitation_key.
FEWEST_CHARACTERS = 16
JSON_LINES = "json"
LOG_FORMS = ("text", JSON_LINES)


@dataclass(frozen=True)
class Settings:
    """One collector's settings.

    Attributes:
        database: an SQLAlchemy URL.
        token: what an operator sends to publish, close and export. Without one, only earlier keys can.
        body_limit: the largest request body in bytes, as sent and inflated.
        lock_timeout: seconds that a write waits for a locked database; a request waits 3 s longer in all.
        grace_days: days after a study closes on which its reports are still taken.
        upload_rate: reports a second that one process takes, half of them for one study if others send too; 0
            for no limit.
        deletion_rate: deletions a second that one process makes; 0 for no limit.
        invitation_key: hides in the database which invitation was used for which report. It is the same in
            all processes of a database.
        signing_keys: a file of public keys in PEM. Anyone may publish a study that is signed with such a key.
        log_format: the form of a server's log.
        cors_origins: other sites whose pages may fetch studies, send reports and withdraw them.
        frame_ancestors: other sites whose pages may show a study's page in a frame.
        ohttp_keys: a file of a gateway's keys; with it devices' requests come through relays too.
        require_ohttp: whether the collector answers devices only through relays.

    Raises:
        UsageError: a value makes no sense.
    """

    database: str = "sqlite:///ldpkit.sqlite3"
    token: str | None = None
    body_limit: int = 1 << 20
    lock_timeout: float = 2.0
    grace_days: int = 7
    upload_rate: float = 0.0
    deletion_rate: float = 100.0
    invitation_key: str | None = None
    signing_keys: str | None = None
    log_format: str = "text"
    cors_origins: tuple[str, ...] = ()
    frame_ancestors: tuple[str, ...] = ()
    ohttp_keys: str | None = None
    require_ohttp: bool = False

    @property
    def patience(self) -> float:
        """Seconds that a commit, or the wait for a connection, may take before a request gets 503."""
        return self.lock_timeout + 3.0

    @property
    def invitation_secret(self) -> bytes:
        """The invitation_key's bytes; b"" without a key."""
        return (self.invitation_key or "").encode()

    def __post_init__(self) -> None:
        _check_token(self.token)
        _check_invitation_key(self.invitation_key)
        if self.body_limit <= 0:
            raise UsageError(
                f"setting body_limit: must be above 0, is {self.body_limit}", code="settings.not_positive"
            )
        for name in ("cors_origins", "frame_ancestors"):
            _check_origins(name, getattr(self, name))
        _check_gateway(self)
        if self.log_format not in LOG_FORMS:
            raise UsageError(
                f"setting log_format: must be one of {', '.join(LOG_FORMS)}, is {self.log_format[:64]!r}",
                code="settings.unknown_log_form",
            )
        rates = ("upload_rate", "deletion_rate")
        for name in ("lock_timeout", "grace_days", *rates):
            value = getattr(self, name)
            if not isfinite(value) or value < 0:
                raise UsageError(
                    f"setting {name}: must be a number and not negative, is {value}",
                    code="settings.negative_or_not_finite",
                )
        if self.grace_days > timedelta.max.days:
            raise UsageError(
                f"setting grace_days: must be at most {timedelta.max.days}, is {self.grace_days}",
                code="settings.grace_days_too_many",
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """Make settings from a mapping by name; missing ones keep their defaults.

        Raises InputError for unknown names.
        """
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            advice = _or_rather(unknown[0], [field.name for field in fields(cls)])
            raise UsageError(f"unknown setting {unknown[0]!r}{advice}", code="settings.unknown_setting")
        given: dict[str, Any] = {
            name: _READERS[name](name, value) for name, value in values.items() if value is not None
        }
        return cls(**given)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read settings from LDPKIT_ and a setting's name in capitals; they override those in a file.

        The file is the one that LDPKIT_CONFIG names, else ldpkit.toml in the current folder if there is one.
        Its SQLite file with a relative path is relative to the settings file's folder. LDPKIT_TOKEN does not
        override its token: clients send that variable, and it may be any key. Raises InputError.
        """
        refuse_unknown_variables(environment)
        file = _file_named(environment)
        values: dict[str, object] = {} if file is None else _read_file(Path(file))
        for field in fields(cls):
            found = environment.get(PREFIX + field.name.upper())
            if found is not None and (field.name != "token" or "token" not in values):
                values[field.name] = found
        return cls.from_mapping(values)


def refuse_unknown_variables(environment: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError for an unknown LDPKIT_… variable: a typing error would silently leave the default."""
    names = [*(field.name.upper() for field in fields(Settings)), *_OTHER_VARIABLES]
    known = [PREFIX + name for name in names]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and not name.startswith(_OF_A_FAILING_DISK):
            near = nearest(name, known)
            raise UsageError(
                f"no setting is called {visible(name[:64])}" + (f": did you mean {near}?" if near else ""),
                code="settings.unknown_variable",
            )


def _or_rather(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f": did you mean {near}?" if near else ""


def _check_token(token: str | None) -> None:
    """Raise InputError for a token that cannot travel in a header, or could be guessed."""
    if token is None:
        return
    if not PRINTABLE.issuperset(token):
        raise UsageError(
            "setting token: must be printable ASCII without spaces, to travel in a header",
            code="settings.token_not_ascii",
        )
    if len(token) < FEWEST_CHARACTERS:
        advice = "`ldpkit init` makes a random token, and `ldpkit token` shows it"
        raise UsageError(
            f"setting token: must have at least {FEWEST_CHARACTERS} characters: {advice}",
            code="settings.token_too_short",
        )


def _check_invitation_key(key: str | None) -> None:
    """Raise UsageError for a key that could be guessed: it shows which invitation sent which report."""
    if key and len(key) < FEWEST_CHARACTERS:
        raise UsageError(
            f"setting invitation_key: must have at least {FEWEST_CHARACTERS} characters: `ldpkit init` "
            "makes a random one",
            code="settings.invitation_key_too_short",
        )


def _check_gateway(settings: Settings) -> None:
    """Raise UsageError if no device could send anything. A node has no gateway, whatever is set."""
    if settings.require_ohttp and not settings.ohttp_keys:
        raise UsageError(
            "setting require_ohttp: needs ohttp_keys, from `ldpkit ohttp rotate`",
            code="settings.require_ohttp_needs_keys",
        )


def _check_origins(name: str, origins: tuple[str, ...]) -> None:
    """Raise UsageError for a text that is no origin, or that a network attacker could imitate."""
    for origin in origins:
        found = ORIGIN.fullmatch(origin)
        if found is None or PORTS[found[1]] == found[3]:
            raise UsageError(
                f"setting {name}: {visible(origin[:64])} must be a site as browsers name it, such as "
                "https://survey.example.org: in small letters, without a path, an ending / or its usual port",
                code="settings.not_an_origin",
            )
        if found[1] == "http" and found[2].strip("[]") not in LOOPBACK:
            raise UsageError(
                f"setting {name}: {origin} must be https://: anybody could be {origin}",
                code="settings.origin_not_https",
            )


def settings_with(**changes: Any) -> Settings:
    """Return the environment's settings, changed by the values that are not None. Raises InputError."""
    return replace(Settings.from_environment(), **{k: v for k, v in changes.items() if v is not None})


def _refuse_foreign_key(settings: Settings) -> None:
    file = _file_named(os.environ)
    if file is None or PREFIX + "INVITATION_KEY" in os.environ:
        return
    values = _read_file(Path(file))
    own = str(values.get("database", settings.database))
    if "invitation_key" in values and _whole_name(own) != _whole_name(settings.database):
        raise InputError(
            f"the invitation_key of {file} is for the database that it names, and --database names "
            f"another: start in the folder of that one, or set {PREFIX}INVITATION_KEY to its servers' key",
            code="settings.invitation_key_of_other_database",
        )


def _whole_name(database: str) -> object:
    """Return a value that is equal for two URLs of the same database."""
    url = _url(database)
    file = None if url is None else _sqlite_file(url)
    return os.path.realpath(file) if file else url or database


def _url(database: str) -> URL | None:
    """Parse a URL; return None if it is invalid. The error is reported where the URL is used."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(database)
    except (ArgumentError, ValueError):
        return None


def _sqlite_file(url: URL) -> str | None:
    """Return the path of an SQLite file; None for another database, or for one in memory."""
    file = url.database or ""
    if not url.drivername.startswith("sqlite") or not file or file.startswith((":memory:", "file:")):
        return None
    return file


def server_settings(**changes: Any) -> Settings:
    """Return `settings_with` for a server, which binds its database to an invitation_key permanently.

    Raises InputError if that key is in a file that names another database, and if LDPKIT_TOKEN is not the
    server's own token.
    """
    settings = settings_with(**changes)
    _refuse_foreign_key(settings)
    found = os.environ.get(TOKEN_VARIABLE)
    if found is not None and changes.get("token") is None and found != settings.token:
        raise InputError(
            f"{TOKEN_VARIABLE} is not the token of {os.environ.get(PREFIX + 'CONFIG') or FILE_NAME}: clients "
            "send it as well, so unset it here, or take the token out of the file",
            code="settings.token_variable_differs",
        )
    return settings


def _file_named(environment: Mapping[str, str]) -> str | None:
    return environment.get(PREFIX + "CONFIG") or (FILE_NAME if os.path.exists(FILE_NAME) else None)


def _read_file(path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(read_bytes(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}", code="settings.not_toml") from None
    # Values that are not texts are refused later by name, like other settings.
    if isinstance(database := values.get("database"), str):
        values["database"] = _from_beside(database, path)
    if isinstance(keys := values.get("ohttp_keys"), str):
        # Relative to the file's folder, so that it works after the folder was moved or copied.
        values["ohttp_keys"] = str(path.parent / keys)
    return values


def _from_beside(database: str, path: Path) -> str:
    """Return the database's URL in a settings file, with an SQLite path relative to the file's folder.

    So a copied or moved folder works on the database next to its settings. Raises InputError if settings of
    an earlier release name the place that they were copied from.
    """
    url = _url(database)
    file = None if url is None else _sqlite_file(url)
    if url is None or file is None:
        return database
    beside = path.absolute().parent / os.path.basename(file)
    if os.path.isabs(file) and beside.is_file() and not (os.path.exists(file) and beside.samefile(file)):
        raise InputError(
            f"{path} names the database {file}, but there is {beside}: if this place was copied or moved, "
            f'write database = "sqlite:///{beside.name}", else put {beside} elsewhere',
            code="settings.database_ambiguous",
        )
    return sqlite_url(path.parent / file, url)


def sqlite_url(file: Path, url: URL | None = None) -> str:
    """Return the URL of an SQLite file, or `url` with that file. Raises InputError if no URL can name it."""
    from sqlalchemy import URL, make_url

    named = (url or URL.create("sqlite")).set(database=str(file)).render_as_string(hide_password=False)
    # Releases of SQLAlchemy differ in what they quote.
    if make_url(named).database != str(file):
        raise InputError(
            f"{file}: no database URL can name it: choose a folder without '?' and '%'",
            code="database.path_not_in_url",
        )
    return named


def _text(name: str, value: object) -> str:
    # A value in a file that is not text, such as `false` for none, would be a secret that anyone can guess.
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(
            f"setting {name}: must be a text in quotes, is {str(value)[:64]}", code="settings.not_text"
        )
    return os.fspath(value)


def _words(name: str, value: object) -> tuple[str, ...]:
    """Return a list of texts; one text may have commas or blanks between them."""
    found = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(found, (list, tuple)) or not all(isinstance(one, str) for one in found):
        raise UsageError(
            f'setting {name}: must be texts, such as ["https://survey.example.org"]',
            code="settings.not_list_of_texts",
        )
    return tuple(found)


def _whole(name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise UsageError(
            f"setting {name}: {value!r} is not a whole number", code="settings.not_whole_number"
        ) from None


def _number(name: str, value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise UsageError(f"setting {name}: {value!r} is not a number", code="settings.not_number") from None


def _yes_or_no(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise UsageError(
            f"setting {name}: {value!r} is neither true nor false", code="settings.not_true_or_false"
        )
    return text in ("true", "1")


_BY_TYPE: dict[str, Callable[[str, object], object]] = {
    "int": _whole,
    "float": _number,
    "tuple[str, ...]": _words,
    "bool": _yes_or_no,
}
_READERS: dict[str, Callable[[str, object], object]] = {
    field.name: _BY_TYPE.get(str(field.type), _text) for field in fields(Settings)
}
