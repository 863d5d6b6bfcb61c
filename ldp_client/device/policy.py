"""What a device's owner allows: how much privacy may be lost, whom it talks to, whose studies it takes."""

from fractions import Fraction

from ldp_client.device.signatures import load_public_key
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.documents.rational import Rational
from ldp_client.secure_sum.trusted_nodes import TrustedNodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any, Optional

    from ldp_client.documents.study import Study

LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}


class Limits:
    """Most privacy that may be lost: epsilon and delta over the device's life, and epsilon for each study."""

    def __init__(self, epsilon: Fraction, epsilon_per_study: Fraction, delta: Fraction) -> None:
        self.epsilon = epsilon
        self.epsilon_per_study = epsilon_per_study
        self.delta = delta


class Policy:
    """The owner's rules, as Device takes them. Raises InputError for one that cannot be read."""

    def __init__(
        self,
        max_epsilon: str,
        max_epsilon_per_study: "Optional[str]",
        max_delta: str,
        allowed_hosts: "Optional[Sequence[str]]",
        signing_keys: "Sequence[str | os.PathLike[str]]",
        nodes: "Sequence[str]" = (),
        known_digests: "Optional[Sequence[str]]" = None,
    ) -> None:
        life = _above_zero("max_epsilon", max_epsilon)
        per_study = max_epsilon if max_epsilon_per_study is None else max_epsilon_per_study
        self.limits = Limits(
            life, _above_zero("max_epsilon_per_study", per_study), _above_zero("max_delta", max_delta)
        )
        hosts = None if allowed_hosts is None else _listed("allowed_hosts", allowed_hosts)
        self.allowed_hosts = None if hosts is None else [host.lower() for host in hosts]
        self.keys = [load_public_key(key) for key in _listed("signing_keys", signing_keys)]
        self.nodes = TrustedNodes(_listed("nodes", nodes))
        known = None if known_digests is None else _listed("known_digests", known_digests)
        self.known_digests = None if known is None else [digest.strip().lower() for digest in known]

    def refuse_unpublished(self, study: "Study") -> None:
        """Raises RefusedError where digests are known and the study has another: perhaps for one person."""
        if self.known_digests is not None and study.digest not in self.known_digests:
            raise RefusedError(
                f"study {study.id}, version {study.version}: its digest {study.digest} is not a published one"
            )

    def node_url(self, text: str) -> str:
        """`base_url` of a node of a secure sum, which the owner has to trust besides. Raises RefusedError."""
        self.nodes.refuse_unknown(text)
        return self.base_url(text)

    def base_url(self, text: str) -> str:
        """A collector's base URL in the one spelling that is compared: scheme and host in small letters,
        no default port, no slash at its end.

        Raises InputError for what is no https URL (http is taken for this machine only), RefusedError
        for a host that is not allowed.
        """
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = None
        odd = [character for character in text if character <= " " or character in "?#@\x7f"]
        if not host or parts.scheme not in ("http", "https") or odd:
            raise InputError(f"the collector {text!r} is not a URL of the form https://host")
        if parts.scheme == "http" and host not in LOOPBACK:
            raise InputError(f"the collector {text!r} must be reached over https")
        place = f"[{host}]" if ":" in host else host
        default = DEFAULT_PORTS[parts.scheme]
        names = {host, place, f"{place}:{port or default}"}
        if self.allowed_hosts is not None and names.isdisjoint(self.allowed_hosts):
            raise RefusedError(f"the host {host} is not one that this device may talk to")
        shown = place if port in (None, default) else f"{place}:{port}"
        return f"{parts.scheme}://{shown}{parts.path.rstrip('/')}"


def _listed(name: str, given: "Sequence[Any]") -> "list[Any]":
    """A list, and no text: each part of a text would be taken for an entry. Nor the path of one key."""
    if isinstance(given, (str, bytes)) or hasattr(given, "__fspath__"):
        raise InputError(f"{name} must be a list, also of one")
    return list(given)


def _above_zero(name: str, text: str) -> Fraction:
    try:
        number = Rational.parse(text)
    except ValueError:
        raise InputError(f'{name} must be a decimal in a string, such as "4"') from None
    if not Rational(0) < number:
        raise InputError(f"{name} must be above 0")
    return Fraction(number.numerator, number.denominator)
