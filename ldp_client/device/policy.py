"""A device owner's rules: how much privacy may be lost, and which hosts and studies are accepted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_client.core.public_keys import PublicKey, is_signed_by_rsa
from ldp_client.documents.channel import HERE
from ldp_client.documents.errors import InputError, RefusedError, UsageError
from ldp_client.documents.rational import Rational
from ldp_client.documents.signed import SignedStudy
from ldp_client.documents.study import Study
from ldp_client.secure_sum.trusted_nodes import TrustedNodes

if TYPE_CHECKING:
    from ldp_client.device.transport import Transport

LOOPBACK = HERE
DEFAULT_PORTS = {"http": 80, "https": 443}


class Limits:
    """The most privacy that may be lost: epsilon and delta are for the device's life.

    epsilon_per_study, epsilon_per_collector: None for no further limit.
    """

    def __init__(
        self,
        epsilon: Fraction,
        epsilon_per_study: Fraction | None,
        epsilon_per_collector: Fraction | None,
        delta: Fraction,
    ) -> None:
        self.epsilon = epsilon
        self.epsilon_per_study = epsilon_per_study
        self.epsilon_per_collector = epsilon_per_collector
        self.delta = delta


class Policy:
    """The owner's rules, as Device takes them. Raises InputError for a rule that cannot be read."""

    def __init__(
        self,
        max_epsilon: str,
        max_epsilon_per_study: str | None,
        max_epsilon_per_collector: str | None,
        max_delta: str,
        allowed_hosts: Sequence[str] | None,
        signing_keys: Sequence[str | os.PathLike[str]] | None,
        nodes: Sequence[str] = (),
        known_digests: Sequence[str] | None = None,
    ) -> None:
        self.limits = Limits(
            _above_zero("max_epsilon", max_epsilon),
            _above_zero_or_none("max_epsilon_per_study", max_epsilon_per_study),
            _above_zero_or_none("max_epsilon_per_collector", max_epsilon_per_collector),
            _above_zero("max_delta", max_delta),
        )
        hosts = None if allowed_hosts is None else listed_texts("allowed_hosts", allowed_hosts)
        self.allowed_hosts = None if hosts is None else [host.lower() for host in hosts]
        self.keys = [] if signing_keys is None else _keys(signing_keys)
        self.nodes = TrustedNodes(listed_texts("nodes", nodes))
        known = None if known_digests is None else listed_texts("known_digests", known_digests)
        self.known_digests = None if known is None else [digest.strip().lower() for digest in known]

    def hold_to(self, kept: str) -> None:
        """Set the lifetime limit to the budget that the ledger keeps."""
        self.limits.epsilon = Fraction(kept)

    def refuse_unpublished(self, study: Study) -> None:
        """Raise RefusedError if digests are known and the study has another: perhaps for one person."""
        if self.known_digests is not None and study.digest not in self.known_digests:
            raise RefusedError.say(
                "device.unpublished", study=study.id, version=study.version, digest=study.digest
            )

    def refuse_places(self, study: Study, collector: str, transport: Transport) -> None:
        """Raise an error if the device may not use the study's nodes or issuer.

        Raises RefusedError for a host that is not allowed, that is on this device while the collector is
        elsewhere, or that the transport does not reach. Raises UsageError without https.
        """
        tokens = study.channel.tokens if study.channel is not None else None
        nodes = [node.url for node in study.protocol.nodes] if study.protocol is not None else []
        if transport.relay and (tokens or nodes):
            raise RefusedError.say("device.beyond_the_relay", study=study.id)
        for url in study.channel.left_from_trial(collector) if study.channel else []:
            # No report would ever leave, and any program that listens here would get the invitation.
            raise RefusedError.say("device.place_here", study=study.id, place=url)
        for url in nodes:
            self.node_url(url)
        if tokens is not None:
            self.base_url(tokens.issuer)

    def node_url(self, text: str) -> str:
        """Return `base_url` of a secure sum's node, which the owner must also trust. Raises RefusedError."""
        self.nodes.refuse_unknown(text)
        return self.base_url(text)

    def base_url(self, text: str) -> str:
        """Return a collector's base URL in the spelling that is compared.

        Scheme and host are in lower case, without a default port or a final slash.

        Raises InputError for anything but an https URL in ASCII (http is accepted for this machine only),
        RefusedError for a host that is not allowed.
        """
        url, host, names = checked_url(text)
        if self.allowed_hosts is not None and names.isdisjoint(self.allowed_hosts):
            raise RefusedError.say("device.host", host=host)
        return url


def checked_url(text: Any) -> tuple[str, str, set[str]]:
    """Return a base URL in the spelling of `Policy.base_url`, its host, and the host's other spellings.

    Raises InputError as `Policy.base_url` does.
    """
    from urllib.parse import urlsplit

    refuse_no_text("collector", text)
    if not text.isascii():
        # Other letters have a second spelling each, and no request is made to them.
        raise UsageError.say("device.collector_ascii", text=text)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    odd = [character for character in text if character <= " " or character in "?#@\\\x7f"]
    if not host or parts.scheme not in ("http", "https") or odd:
        raise UsageError.say("device.collector_url", text=text)
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError.say("device.collector_https", text=text)
    bracketed = f"[{host}]" if ":" in host else host
    default = DEFAULT_PORTS[parts.scheme]
    shown = bracketed if port in (None, default) else f"{bracketed}:{port}"
    names = {host, bracketed, f"{bracketed}:{port or default}"}
    return f"{parts.scheme}://{shown}{parts.path.rstrip('/')}", host, names


def _listed(name: str, given: Sequence[Any]) -> list[Any]:
    """Return a list. Reject a text, whose characters would count as entries, and the path of one key."""
    if isinstance(given, (str, bytes)) or hasattr(given, "__fspath__"):
        raise InputError.say("device.list", name=name)
    try:
        return list(given)
    except TypeError:
        raise InputError.say("device.list", name=name) from None


def listed_texts(name: str, given: Sequence[Any]) -> list[str]:
    """Return a list of strings. Raises InputError for anything else."""
    for text in (listed := _listed(name, given)):
        if not isinstance(text, str):
            raise InputError.say("device.texts", name=name, found=type(text).__name__)
    return listed


def refuse_no_text(name: str, given: Any) -> None:
    """Raise InputError unless `given` is text."""
    if not isinstance(given, str):
        raise InputError.say("device.text", name=name, found=type(given).__name__)


def plain_invitation(given: Any) -> str:
    """Return an invitation without blanks, quotes and dashes from the letter it was copied from.

    A header could not hold them. For a whole link, return the invitation that it carries. js/pasted.js is its
    twin. Raises InputError unless `given` is text.
    """
    refuse_no_text("invitation", given)
    text = "".join([one for one in given if "!" <= one <= "~"])
    return text.rpartition("#invitation=")[2].strip("\"'<>()[],.;:`")


def folder_of(given: str | os.PathLike[str]) -> str:
    """Return a folder's path as text, with ~ replaced by the home folder.

    Raises InputError for anything but a path, and for bytes. Also raises it for a ~ without a home folder:
    that would be a folder named ~, a different one wherever the program starts.
    """
    path = given.__fspath__() if hasattr(given, "__fspath__") else given
    if not isinstance(path, str):
        raise InputError.say("device.folder", found=type(given).__name__)
    folder = os.path.expanduser(path)
    # An empty HOME would make ~ the root of the disk.
    is_nowhere = os.environ.get("HOME") == "" and path.partition(os.sep)[0] == "~"
    if path[:1] == "~" and (is_nowhere or not os.path.isabs(folder)):
        raise InputError.say("device.no_home", folder=path)
    return folder


def _above_zero(name: str, text: str) -> Fraction:
    try:
        number = Rational.parse(text)
    except ValueError:
        raise UsageError.say("device.decimal", name=name) from None
    if not Rational(0) < number:
        raise UsageError.say("device.above_zero", name=name)
    return Fraction(number.numerator, number.denominator)


def _above_zero_or_none(name: str, text: str | None) -> Fraction | None:
    return None if text is None else _above_zero(name, text)


def _keys(given: Sequence[str | os.PathLike[str]]) -> list[PublicKey]:
    """Return the pinned keys. Reject an empty list, as from a folder without keys: it would pin nothing."""
    keys = [load_public_key(key) for key in _listed("signing_keys", given)]
    if not keys:
        raise InputError.say("device.no_keys")
    return keys


def load_public_key(text_or_path: str | os.PathLike[str]) -> PublicKey:
    """Load a key from its PEM text, or from a file that holds it. Raises InputError."""
    if isinstance(text_or_path, str) and "-----BEGIN" in text_or_path:
        return PublicKey.from_pem(text_or_path)
    if not isinstance(text_or_path, str) and not hasattr(text_or_path, "__fspath__"):
        # open() would take a number for an open file.
        raise InputError.say("device.key_kind", found=type(text_or_path).__name__)
    try:
        with open(text_or_path, encoding="ascii") as file:
            return PublicKey.from_pem(file.read())
    except UnicodeError:
        raise InputError.say("device.key_not_pem", path=text_or_path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError.say("device.cannot_read_key", path=text_or_path, reason=reason) from None


def verify_study(signed: SignedStudy, keys: Sequence[PublicKey]) -> list[PublicKey]:
    """Return the pinned keys whose signatures on the study are valid.

    Neither other keys' signatures nor wrong signatures next to a valid one count. Raises RefusedError if no
    pinned key signed, or if all signatures of pinned keys are wrong.
    """
    trusted = {key.id: key for key in keys}
    pinned = [signature for signature in signed.signatures if signature.key in trusted]
    if not pinned:
        raise RefusedError.say("device.unsigned", study=signed.study.id)
    text = signed.study.canonical()
    valid = [one.key for one in pinned if is_signed_by_rsa(text, one.value, trusted[one.key].value)]
    if not valid:
        raise RefusedError.say("device.wrong_signature", study=signed.study.id, key=pinned[0].key[:16])
    return [trusted[key] for key in valid]
