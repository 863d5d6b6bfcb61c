"""What an app passes to `Device`, checked: URLs, paths, keys, lists and numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ldp_client.documents.errors import DocumentError, InputError, UsageError

if TYPE_CHECKING:
    from fractions import Fraction

    from ldp_client.core.public_keys import PublicKey
    from ldp_client.documents.channel import Node

# Names of the local machine.
LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}


def checked_url(text: str) -> tuple[str, str, set[str]]:
    """Return a base URL in the spelling of `Policy.base_url`, its host, and the host's other spellings.

    Raises InputError as `Policy.base_url` does.
    """
    from urllib.parse import urlsplit

    if not text.isascii():
        # Other letters have a second spelling each, and no request is made to them.
        raise UsageError(
            f"the address {text!r} must be in ASCII: write a host's other letters as xn--…, a path's as %XX",
            code="device.collector_ascii",
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    odd = [character for character in text if character <= " " or character in "?#@\\\x7f"]
    # An empty label would spell one host in two ways: one operator would look like two.
    if not host or port == 0 or not all(host.split(".")) or parts.scheme not in ("http", "https") or odd:
        raise UsageError(
            f"the address {text!r} is not a URL of the form https://host", code="device.collector_url"
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError(
            f"the address {text!r} must be reached over https: http is for this machine only",
            code="device.collector_https",
        )
    bracketed = f"[{host}]" if ":" in host else host
    default = DEFAULT_PORTS[parts.scheme]
    shown = bracketed if port in (None, default) else f"{bracketed}:{port}"
    names = {host, bracketed, f"{bracketed}:{port or default}"}
    return f"{parts.scheme}://{shown}{parts.path.rstrip('/')}", host, names


def listed_texts(name: str, given: Sequence[Any]) -> list[str]:
    """Return a list of strings. Raises InputError for one text or path, whose characters would count."""
    if isinstance(given, (str, bytes, os.PathLike)):
        raise InputError(f"{name} must be a list of strings, even of one", code="device.list")
    return list(given)


def origin_of(base_url: str) -> str:
    """Return the origin of a base URL in the spelling of `Policy.base_url`; "" for no collector."""
    return "/".join(base_url.split("/")[:3])


def is_here(url: str) -> bool:
    """Return True if a URL names the local machine."""
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in LOOPBACK


def folder_of(given: str | os.PathLike[str]) -> str:
    """Return a folder's path as text, with ~ replaced by the home folder.

    Raises InputError for a ~ without a home folder: that would be a folder named ~, a different one wherever
    the program starts.
    """
    path = os.fspath(given)
    folder = os.path.expanduser(path)
    # An empty HOME would make ~ the root of the disk.
    if path[:1] == "~" and (os.environ.get("HOME") == "" or not os.path.isabs(folder)):
        raise InputError(
            f"{path} is in no home folder, because HOME is missing, empty or relative: name a folder",
            code="device.no_home",
        )
    return folder


def above_zero(name: str, stated: str | float) -> Fraction:
    """Return a stated decimal, or a number's shortest decimal. Raises UsageError unless it is above 0."""
    from ldp_client.documents.rational import Rational

    try:
        number = Rational.parse(str(stated))
    except ValueError:
        raise UsageError(f'{name} must be a number, such as "0.5"', code="device.decimal") from None
    if number <= 0:
        raise UsageError(f"{name} must be above 0", code="device.above_zero")
    return number


def public_keys(given: Sequence[str | os.PathLike[str]]) -> list[PublicKey]:
    """Return the pinned keys. Reject an empty list, as from a folder without keys: it would pin nothing."""
    keys = [load_public_key(key) for key in listed_texts("signing_keys", given)]
    if not keys:
        raise InputError(
            "signing_keys is empty: give at least one key, or omit it to accept unsigned studies",
            code="device.no_keys",
        )
    return keys


def load_public_key(text_or_path: str | os.PathLike[str]) -> PublicKey:
    """Load a key from its PEM text, or from a file that holds it. Raises InputError."""
    from ldp_client.core.public_keys import PublicKey

    if isinstance(text_or_path, str) and "-----BEGIN" in text_or_path:
        return PublicKey.from_pem(text_or_path)
    try:
        with open(text_or_path, encoding="ascii") as file:
            return PublicKey.from_pem(file.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError(
            f"cannot read the key {text_or_path}: {reason}", code="device.cannot_read_key"
        ) from None


def trusted_nodes(given: Sequence[str]) -> dict[str, Node]:
    """Return the nodes that the owner trusts, by URL. Raises InputError for an address of another form."""
    from ldp_client.documents.channel import NODE_ADDRESS, Node

    addresses = listed_texts("nodes", given)
    try:
        nodes = [Node(NODE_ADDRESS.read(address, "nodes", DocumentError)) for address in addresses]
    except DocumentError as error:
        raise InputError(f"nodes: a trusted node {error.problem}", code="device.node") from None
    return {node.url: node for node in nodes}
