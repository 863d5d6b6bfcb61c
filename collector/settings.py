"""Everything that an operator can set."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomllib

from ldp_client.device.policy import LOOPBACK
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import read_bytes
from ldp_client.words.text import nearest, visible

if TYPE_CHECKING:
    from sqlalchemy import URL

PREFIX = "LDPKIT_"
# What travels in a header as it is.
PRINTABLE = frozenset(map(chr, range(0x21, 0x7F)))
# prometheus_client's own name: the folder where the counts of several processes meet.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# What `ldpkit init` writes, and every command reads that is started in its folder.
FILE_NAME = "ldpkit.toml"
TOKEN_VARIABLE = PREFIX + "TOKEN"
# Of no setting: where settings are, where compiled programs are kept, and of tests and benchmarks.
_OTHER_VARIABLES = ("CONFIG", "CACHE", "DATA")
_OF_A_FAILING_DISK = PREFIX + "DISK_"
# scheme, host, port, of what browsers send as Origin.
ORIGIN = re.compile(r"(https?)://([a-z0-9]+(?:[-.]+[a-z0-9]+)*|\[[0-9a-f:]+\])(?::([1-9][0-9]{0,4}))?")
PORTS = {"http": "80", "https": "443"}
# Of a token: whoever has it may do everything, and may try five a second. And of an invitation_key.
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
        busy_timeout: seconds that a write waits for a locked database; a request waits 3 s longer in all.
        late_days: days after a study closes on which its reports are still taken.
        upload_rate: reports a second that one process takes, half of them for one study where others send
            too; 0 for no limit.
        deletion_rate: deletions a second that one process makes; 0 for no limit.
        invitation_key: hides in the database which invitation was used for which report. It is the same in
            all processes of a database.
        signing_keys: a file of public keys in PEM. Anybody may publish a study that one of them signed.
        log: the form of a server's log.
        origins: other sites whose pages may fetch studies, send reports and withdraw them.
        framed_by: other sites whose pages may show a study's page in a frame.
        ohttp_keys: a file of a gateway's keys; with it devices' requests come through relays too.
        only_ohttp: whether the collector takes requests through relays alone.

    Raises:
        UsageError: a value makes no sense.
    """

    database: str = "sqlite:///ldpkit.sqlite3"
    token: str | None = None
    body_limit: int = 1 << 20
    busy_timeout: float = 2.0
    late_days: int = 7
    upload_rate: float = 0.0
    deletion_rate: float = 100.0
    invitation_key: str | None = None
    signing_keys: str | None = None
    log: str = "text"
    origins: tuple[str, ...] = ()
    framed_by: tuple[str, ...] = ()
    ohttp_keys: str | None = None
    only_ohttp: bool = False

    @property
    def patience(self) -> float:
        """Seconds that a commit, or the wait for a connection, may take before a request gets 503."""
        return self.busy_timeout + 3.0

    @property
    def invitation_secret(self) -> bytes:
        """The invitation_key's bytes; none without one."""
        return (self.invitation_key or "").encode()

    def __post_init__(self) -> None:
        _check_token(self.token)
        _check_invitation_key(self.invitation_key)
        if self.body_limit <= 0:
            raise UsageError(
                f"setting body_limit: must be above 0, is {self.body_limit}", code="settings.not_positive"
            )
        for name in ("origins", "framed_by"):
            _check_origins(name, getattr(self, name))
        _check_gateway(self)
        if self.log not in LOG_FORMS:
            raise UsageError(
                f"setting log: must be one of {', '.join(LOG_FORMS)}, is {self.log[:64]!r}",
                code="settings.unknown_log_form",
            )
        rates = ("upload_rate", "deletion_rate")
        for name in ("busy_timeout", "late_days", *rates):
            value = getattr(self, name)
            if not isfinite(value) or value < 0:
                raise UsageError(
                    f"setting {name}: must be a number and not negative, is {value}",
                    code="settings.negative_or_not_finite",
                )
        if self.late_days > timedelta.max.days:
            raise UsageError(
                f"setting late_days: must be at most {timedelta.max.days}, is {self.late_days}",
                code="settings.late_days_too_many",
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """Settings by name; those left out keep their defaults. Raises InputError for unknown names."""
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
        """Settings from LDPKIT_ and a setting's name in capitals, above those of a file.

        That is the one which LDPKIT_CONFIG names, or else ldpkit.toml in the current folder if there is one.
        An SQLite file that it names by a relative path is found from the folder that it is in. Its token
        stays, whatever LDPKIT_TOKEN is: clients send that, and it may be anybody's key. Raises InputError.
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
    """Raises UsageError for a LDPKIT_… that nothing reads: a slip would leave the default in silence."""
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
    """Raises InputError for what cannot travel in a header, or could be guessed."""
    if token is None:
        return
    if not PRINTABLE.issuperset(token):
        raise UsageError(
            "setting token: must be printable ASCII without spaces, to travel in a header",
            code="settings.token_not_ascii",
        )
    if len(token) < FEWEST_CHARACTERS:
        advice = "`ldpkit init` makes one that nobody can guess, and `ldpkit token` shows it"
        raise UsageError(
            f"setting token: must have at least {FEWEST_CHARACTERS} characters: {advice}",
            code="settings.token_too_short",
        )


def _check_invitation_key(key: str | None) -> None:
    """Raises UsageError for what could be guessed: whoever does can tell who sent which report."""
    if key and len(key) < FEWEST_CHARACTERS:
        raise UsageError(
            f"setting invitation_key: must have at least {FEWEST_CHARACTERS} characters: `ldpkit init` makes "
            "one that nobody can guess",
            code="settings.invitation_key_too_short",
        )


def _check_gateway(settings: Settings) -> None:
    """Raises UsageError where no device could send anything. A node has no gateway, whatever is set."""
    if settings.only_ohttp and not settings.ohttp_keys:
        raise UsageError(
            "setting only_ohttp: needs ohttp_keys, from `ldpkit oblivious rotate`",
            code="settings.only_ohttp_needs_keys",
        )


def _check_origins(name: str, origins: tuple[str, ...]) -> None:
    """Raises UsageError for what no browser calls a page's origin, or anybody on its way could be."""
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
    """The environment's settings with those changed that are not None. Raises InputError."""
    return replace(Settings.from_environment(), **{k: v for k, v in changes.items() if v is not None})


def _refuse_foreign_key(settings: Settings) -> None:
    file = _file_named(os.environ)
    if file is None or PREFIX + "INVITATION_KEY" in os.environ:
        return
    values = _read_file(Path(file))
    own = str(values.get("database", settings.database))
    if "invitation_key" in values and _whole_name(own) != _whole_name(settings.database):
        raise InputError(
            f"the invitation_key of {file} is for the database that it names, and --database names another: "
            f"start in that one's folder, or set {PREFIX}INVITATION_KEY to what its servers have",
            code="settings.invitation_key_of_other_database",
        )


def _whole_name(database: str) -> object:
    """What two URLs of one database have in common."""
    url = _url(database)
    file = None if url is None else _sqlite_file(url)
    return os.path.realpath(file) if file else url or database


def _url(database: str) -> URL | None:
    """None for what is no URL: what it is wrong with is said where it is used."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(database)
    except (ArgumentError, ValueError):
        return None


def _sqlite_file(url: URL) -> str | None:
    """The path of an SQLite file; None for another database, or one in memory."""
    file = url.database or ""
    if not url.drivername.startswith("sqlite") or not file or file.startswith((":memory:", "file:")):
        return None
    return file


def server_settings(**changes: Any) -> Settings:
    """`settings_with`, for a server, which binds its database to an invitation_key for good.

    Raises InputError where that key stands in a file beside the name of another database, and for a
    LDPKIT_TOKEN that is not the server's own token.
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
    # What is no text is refused by its name, with the others.
    if isinstance(database := values.get("database"), str):
        values["database"] = _from_beside(database, path)
    if isinstance(keys := values.get("ohttp_keys"), str):
        # Of a place that was moved or copied, too.
        values["ohttp_keys"] = str(path.parent / keys)
    return values


def _from_beside(database: str, path: Path) -> str:
    """A database's URL as settings in a file mean it: an SQLite file is named from their folder.

    So a place that was copied or moved works on the database beside its settings. Raises InputError where
    settings of an earlier release name the place that they were copied from.
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
    """The URL of an SQLite file, or `url` with that file. Raises InputError where no URL can name it."""
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
    # What is no text in a file, such as `false` for none, would be a secret that anybody can guess.
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(
            f"setting {name}: must be a text in quotes, is {str(value)[:64]}", code="settings.not_text"
        )
    return os.fspath(value)


def _words(name: str, value: object) -> tuple[str, ...]:
    """A list of texts, or one text with commas or blanks between."""
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
