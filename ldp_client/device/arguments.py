"""What an app passes to `Device`, checked: URLs, paths, keys, lists and numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ldp_client.core.public_keys import PublicKey
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.rational import Rational

# Names of the local machine.
LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}


def checked_url(text: Any) -> tuple[str, str, set[str]]:
    """Return a base URL in the spelling of `Policy.base_url`, its host, and the host's other spellings.

    Raises InputError as `Policy.base_url` does.
    """
    from urllib.parse import urlsplit

    refuse_no_text("collector", text)
    if not text.isascii():
        # Other letters have a second spelling each, and no request is made to them.
        raise UsageError(
            f"the collector {text!r} must be in ASCII: write a host's other letters as xn--…, a path's as "
            "%XX",
            code="device.collector_ascii",
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    odd = [character for character in text if character <= " " or character in "?#@\\\x7f"]
    # An empty label would spell one host in two ways: one operator would look like two.
    if not host or not all(host.split(".")) or parts.scheme not in ("http", "https") or odd:
        raise UsageError(
            f"the collector {text!r} is not a URL of the form https://host", code="device.collector_url"
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError(f"the collector {text!r} must be reached over https", code="device.collector_https")
    bracketed = f"[{host}]" if ":" in host else host
    default = DEFAULT_PORTS[parts.scheme]
    shown = bracketed if port in (None, default) else f"{bracketed}:{port}"
    names = {host, bracketed, f"{bracketed}:{port or default}"}
    return f"{parts.scheme}://{shown}{parts.path.rstrip('/')}", host, names


def listed_texts(name: str, given: Sequence[Any]) -> list[str]:
    """Return a list of strings. Raises InputError for anything else, such as one text or path."""
    is_list = isinstance(given, (list, tuple, set, frozenset))
    if not is_list or not all([isinstance(text, str) for text in given]):
        raise InputError(f"{name} must be a list of strings, even of one", code="device.list")
    return list(given)


def refuse_no_text(name: str, given: Any) -> None:
    """Raise InputError unless `given` is text."""
    if not isinstance(given, str):
        raise InputError(f"{name} must be a string, not {type(given).__name__}", code="device.text")


def origin_of(base_url: str) -> str:
    """Return the origin of a base URL in the spelling of `Policy.base_url`; "" for no collector."""
    return "/".join(base_url.split("/")[:3])


def is_here(url: str) -> bool:
    """Return True if a URL names the local machine."""
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in LOOPBACK


def folder_of(given: str | os.PathLike[str]) -> str:
    """Return a folder's path as text, with ~ replaced by the home folder.

    Raises InputError for anything but a path, and for bytes. Also raises it for a ~ without a home folder:
    that would be a folder named ~, a different one wherever the program starts.
    """
    path = given.__fspath__() if hasattr(given, "__fspath__") else given
    if not isinstance(path, str):
        raise InputError(
            f"the folder of a device must be a string or a path, not {type(given).__name__}",
            code="device.folder",
        )
    folder = os.path.expanduser(path)
    # An empty HOME would make ~ the root of the disk.
    if path[:1] == "~" and (os.environ.get("HOME") == "" or not os.path.isabs(folder)):
        raise InputError(
            f"{path} is in no home folder, because HOME is missing, empty or relative: name a folder",
            code="device.no_home",
        )
    return folder


def above_zero(name: str, text: str) -> Fraction:
    """Return a stated decimal exactly. Raises UsageError unless it is above 0."""
    try:
        number = Rational.parse(text)
    except ValueError:
        raise UsageError(
            f'{name} must be a decimal in a string, such as "4"', code="device.decimal"
        ) from None
    if not Rational(0) < number:
        raise UsageError(f"{name} must be above 0", code="device.above_zero")
    return Fraction(number.numerator, number.denominator)


def public_keys(given: Sequence[str | os.PathLike[str]]) -> list[PublicKey]:
    """Return the pinned keys. Reject an empty list, as from a folder without keys: it would pin nothing."""
    if not isinstance(given, (list, tuple, set, frozenset)):
        # The characters of a text would count as keys.
        raise InputError("signing_keys must be a list of strings, even of one", code="device.list")
    keys = [load_public_key(key) for key in given]
    if not keys:
        raise InputError(
            "signing_keys is empty: give at least one key, or omit it to accept unsigned studies",
            code="device.no_keys",
        )
    return keys


def load_public_key(text_or_path: str | os.PathLike[str]) -> PublicKey:
    """Load a key from its PEM text, or from a file that holds it. Raises InputError."""
    if isinstance(text_or_path, str) and "-----BEGIN" in text_or_path:
        return PublicKey.from_pem(text_or_path)
    if not isinstance(text_or_path, str) and not hasattr(text_or_path, "__fspath__"):
        # open() would take a number for an open file.
        raise InputError(
            f"a key must be PEM text or the path of a file, not {type(text_or_path).__name__}",
            code="device.key_kind",
        )
    try:
        with open(text_or_path, encoding="ascii") as file:
            return PublicKey.from_pem(file.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError(
            f"cannot read the key {text_or_path}: {reason}", code="device.cannot_read_key"
        ) from None
