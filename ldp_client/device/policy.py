"""What a device accepts: its owner's rules, a person's consent, and what it knows of the studies that it met.

A study belongs to its collector's origin, which is its scheme, host and port. The path does not count: one
operator is one collector. Any collector can publish a study under the id of another collector's study; each
origin's studies have separate versions, consents, answers and withdrawals. Only the owner's app states that a
collector moved; a server never does. Rows without an origin, from a device without a collector, move to the
first collector that is named. In SQL, `is_own(origin)` holds for the rows of this device's collector.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ldp_client.device import arguments
from ldp_client.device.arguments import above_zero, is_here, listed_texts, origin_of
from ldp_client.device.layout import TABLES
from ldp_client.documents.errors import AnswerError, InputError, RefusedError

if TYPE_CHECKING:
    import sqlite3
    from datetime import date

    from ldp_client.core.public_keys import PublicKey
    from ldp_client.documents.channel import Node, Tickets
    from ldp_client.documents.signed import SignedStudy
    from ldp_client.documents.study import Study

FEWEST_HOSTS = 2
# A permanent answer that was withdrawn.
WIPED = b""


class Policy:
    """The owner's rules, as Device takes them. Raises InputError for a rule that cannot be read.

    epsilon, delta: the most that all answers of this device's life may cost, exactly. epsilon_per_study,
    epsilon_per_collector: None for no further limit.
    """

    def __init__(
        self,
        max_epsilon: str | float,
        max_epsilon_per_study: str | float | None,
        max_epsilon_per_collector: str | float | None,
        max_delta: str | float,
        allowed_hosts: Sequence[str] | None,
        signing_keys: Sequence[str | os.PathLike[str]] | None,
        nodes: Sequence[str],
        known_digests: Sequence[str] | None,
    ) -> None:
        self.epsilon = above_zero("max_epsilon", max_epsilon)
        self.epsilon_per_study = self.epsilon_per_collector = None
        if max_epsilon_per_study is not None:
            self.epsilon_per_study = above_zero("max_epsilon_per_study", max_epsilon_per_study)
        if max_epsilon_per_collector is not None:
            self.epsilon_per_collector = above_zero("max_epsilon_per_collector", max_epsilon_per_collector)
        self.delta = above_zero("max_delta", max_delta)
        hosts = None if allowed_hosts is None else listed_texts("allowed_hosts", allowed_hosts)
        self.allowed_hosts = None if hosts is None else [host.lower() for host in hosts]
        self.keys = [] if signing_keys is None else arguments.public_keys(signing_keys)
        self.nodes = arguments.trusted_nodes(nodes)
        known = None if known_digests is None else listed_texts("known_digests", known_digests)
        self.known_digests = None if known is None else [digest.strip().lower() for digest in known]

    def refuse_unpublished(self, study: Study) -> None:
        """Raise RefusedError if digests are known and the study has another: perhaps for one person."""
        if self.known_digests is not None and study.digest not in self.known_digests:
            raise RefusedError(
                f"study {study.id}, version {study.version}: its digest {study.digest} is not among the "
                "published digests",
                code="device.unpublished",
            )

    def refuse_places(self, study: Study, collector: str, relay: str) -> None:
        """Raise an error if the device may not use the study's nodes or issuer, as `refuse_hosts` does.

        Raises RefusedError also for an issuer on this device while the collector is elsewhere, or at the
        collector's origin, and for nodes with other keys than the owner trusts, or that may be one party.
        """
        tickets = study.channel.tickets if study.channel is not None else None
        nodes = [node.url for node in study.protocol.nodes] if study.protocol is not None else []
        if tickets is not None and is_here(tickets.issuer) and not is_here(collector):
            # No report would ever leave, and any program that listens here would get the ticket.
            raise RefusedError(
                f"study {study.id} names {tickets.issuer}, which is this machine, but its collector is "
                "elsewhere: the author forgot to replace it. Nothing was answered",
                code="device.place_here",
            )
        self.refuse_hosts(study.id, tickets, nodes, relay)
        if tickets is not None and origin_of(self.base_url(tickets.issuer)) == origin_of(collector):
            # One operator of both could join the person who got a token and the report that came with it.
            raise RefusedError(
                f"study {study.id} names {tickets.issuer} as its issuer, which is its collector too: who "
                "gives tickets could join people and reports. Nothing was answered",
                code="device.issuer_is_collector",
            )
        if study.protocol is not None:
            self._refuse_one_party(study.id, study.protocol.nodes)

    def _refuse_one_party(self, study_id: str, nodes: Sequence[Node]) -> None:
        """Raise RefusedError unless trusted nodes have their keys, and are not one node in disguise."""
        from urllib.parse import urlsplit

        for node in nodes:
            trusted = self.nodes[node.url]
            if (trusted.sealing_key, trusted.signing_key) != (node.sealing_key, node.signing_key):
                raise RefusedError(
                    f"the node {node.url} of study {study_id} does not have the keys that this device trusts",
                    code="device.node_keys",
                )
        hosts = {str(urlsplit(node.url).hostname).rstrip(".") for node in nodes}
        if len(hosts) < FEWEST_HOSTS:
            raise RefusedError(
                f"all nodes of study {study_id} are on the host {hosts.pop()}: one party reads every answer",
                code="device.nodes_one_host",
            )
        keys = {key for node in nodes for key in (node.sealing_key, node.signing_key)}
        if len(keys) < 2 * len(nodes):
            raise RefusedError(
                f"nodes of study {study_id} share a key: they are one party, which reads every answer",
                code="device.nodes_one_key",
            )

    def refuse_hosts(self, study_id: str, tickets: Tickets | None, nodes: list[str], relay: str) -> None:
        """Raise an error if the device may not make requests to a study's nodes or issuer.

        Raises RefusedError for a host that is not allowed, an untrusted node, or a host that the device's
        relay does not reach. Raises UsageError without https.
        """
        if relay and (tickets or nodes):
            raise RefusedError(
                f"study {study_id} needs an issuer of tickets or nodes, but this device's relay reaches its "
                "collector alone",
                code="device.beyond_the_relay",
            )
        for url in nodes:
            # It could be any service that the device reaches.
            if url not in self.nodes:
                raise RefusedError(
                    f"this device's owner does not trust the node {url}. All nodes together read every "
                    "answer. If you trust it not to work with the others, name it with its keys",
                    code="device.node_unknown",
                )
        for url in [*nodes, *([tickets.issuer] if tickets is not None else [])]:
            self.base_url(url)

    def base_url(self, text: str) -> str:
        """Return a collector's base URL in the spelling that is compared.

        Scheme and host are in lower case, without a default port or a final slash.

        Raises InputError for anything but an https URL in ASCII (http is accepted for this machine only),
        RefusedError for a host that is not allowed.
        """
        url, host, names = arguments.checked_url(text)
        if self.allowed_hosts is not None and names.isdisjoint(self.allowed_hosts):
            raise RefusedError(
                f"the host {host} is not among the hosts that this device may contact", code="device.host"
            )
        return url


def verify_study(signed: SignedStudy, keys: Sequence[PublicKey]) -> None:
    """Raise RefusedError unless the signature of at least one pinned key is valid.

    Neither other keys' signatures nor wrong signatures next to a valid one count.
    """
    from ldp_client.core.public_keys import is_signed_by_rsa

    trusted = {key.id: key.value for key in keys}
    pinned = [signature for signature in signed.signatures if signature.key in trusted]
    if not pinned:
        raise RefusedError(
            f"study {signed.study.id} is not signed by a key that this device trusts", code="device.unsigned"
        )
    text = signed.study.canonical()
    if not any([is_signed_by_rsa(text, each.value, trusted[each.key]) for each in pinned]):
        raise RefusedError(
            f"study {signed.study.id}: the signature of key {pinned[0].key[:16]} is wrong",
            code="device.wrong_signature",
        )


def refuse_no_study(study: Any) -> None:
    """Raise InputError for anything but a study: its text, or a signed study that was not accepted."""
    from ldp_client.documents.study import Study

    if not isinstance(study, Study):
        raise InputError(
            f"study must be a Study from Study.from_json, accept or fetch, not {type(study).__name__}",
            code="device.no_study",
        )
    if study.only_shown:
        raise InputError(
            f"study {study.id}: a study from shown_in is for display. Answer the study that it was made from",
            code="device.only_shown",
        )


def refuse_older(connection: sqlite3.Connection, study: Study) -> None:
    """Raise RefusedError for a version below the answered one, or another document of that version."""
    query = "SELECT version, digest FROM answered WHERE study = ? AND is_own(origin)"
    for version, digest in connection.execute(query, (study.id,)).fetchall():
        if study.version < version:
            raise RefusedError(
                f"study {study.id}: version {study.version} is older than {version}, which this device has "
                "answered",
                code="device.older_version",
            )
        if study.version == version and digest != study.digest:
            raise RefusedError(
                f"study {study.id}: this device has answered another version {version} of it",
                code="device.other_version",
            )


def note_answered(connection: sqlite3.Connection, study: Study, origin: str) -> None:
    """Store the version that was answered."""
    row = (origin, study.id, study.version, study.digest)
    connection.execute("INSERT OR REPLACE INTO answered VALUES (?, ?, ?, ?)", row)


def refuse_unsigned(study: Study, keys: Sequence[PublicKey], signed: set[str]) -> None:
    """Raise RefusedError if keys are pinned and the study's digest is not among the `signed` ones."""
    if keys and study.digest not in signed:
        raise RefusedError(
            f"study {study.id} is not known to be signed by a trusted key: use device.fetch or device.accept",
            code="device.not_known_signed",
        )


def refuse_nameless(connection: sqlite3.Connection, study: Study, origin: str) -> None:
    """Raise RefusedError if a device without a collector answered the study to one before.

    Its report would go to the first collector that it names, perhaps as a second answer.
    """
    named = "study = ?1 AND origin <> ''"
    query = " UNION ".join([f"SELECT origin FROM {table} WHERE {named}" for table in TABLES])
    known = connection.execute(query, (study.id,)).fetchone() if not origin else None
    if known:
        raise RefusedError(
            f"study {study.id}: this device knows it from {known[0]}: name its collector",
            code="device.name_collector",
        )


def refuse_unknown(connection: sqlite3.Connection, study_id: str) -> None:
    """Raise InputError unless the device agreed to answer a study of this id from its collector."""
    tables = ("consents", "spent", "reports")
    query = " UNION ".join([f"SELECT 1 FROM {table} WHERE study = ?1 AND is_own(origin)" for table in tables])
    if not isinstance(study_id, str) or not connection.execute(query, (study_id,)).fetchone():
        raise InputError("this device knows no study of that id", code="device.unknown_study")


def note_consent(connection: sqlite3.Connection, study: Study, origin: str, today: date) -> None:
    """Record that the person agrees to answer exactly this document to this collector."""
    row = (origin, study.id, study.digest, today.isoformat())
    connection.execute("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?)", row)


def forget_study(connection: sqlite3.Connection, study_id: str) -> None:
    """Delete the person's consent to a study, and its permanent answers, but not that they were given."""
    connection.execute("DELETE FROM consents WHERE study = ? AND is_own(origin)", (study_id,))
    query = "UPDATE permanent SET answer = ? WHERE study = ? AND is_own(origin)"
    connection.execute(query, (WIPED, study_id))


def refuse_without_consent(connection: sqlite3.Connection, study: Study) -> None:
    """Raise RefusedError unless the person agreed to answer exactly this document to this collector."""
    query = "SELECT 1 FROM consents WHERE study = ? AND is_own(origin) AND digest = ?"
    if not connection.execute(query, (study.id, study.digest)).fetchone():
        raise RefusedError(
            f"no consent to study {study.id}, version {study.version}: device.consent(study) records it",
            code="device.no_consent",
        )


def refuse_asked_behind_noise(connection: sqlite3.Connection, study: Study) -> None:
    """Raise RefusedError if a public field has the id of a question that this study asked before."""
    query = "SELECT 1 FROM spent WHERE study = ? AND question = ? AND is_own(origin)"
    for field in study.public:
        if connection.execute(query, (study.id, field.id)).fetchone():
            raise RefusedError(
                f"study {study.id}: {field.id} would leave without noise, but this device was asked it with "
                "noise before. Nothing is sent",
                code="device.asked_behind_noise",
            )


def with_public(study: Study, answers: dict[str, Any], public: dict[str, Any] | None) -> dict[str, Any]:
    """Return answers and public values in one dict.

    Public values are given in `public` only: `answers` alone do not show that a field is no longer private.
    Raises RefusedError for a public field among the answers, AnswerError for an unknown public field.
    """
    fields = [field.id for field in study.public]
    if public is not None and not isinstance(public, dict):
        raise AnswerError.say("core.answers", "public")
    if not isinstance(answers, dict):
        return answers  # which `quantise_answers` refuses
    for name in public or {}:
        if name not in fields:
            raise AnswerError.say("core.not_public", str(name)[:64])
    unnamed = [name for name in fields if name in answers]
    if unnamed:
        raise RefusedError(
            f"study {study.id}: {', '.join(unnamed)} would leave without noise. If that is meant, use "
            "device.answer(study, answers, public={…})",
            code="device.clear_unnamed",
        )
    return {**answers, **(public or {})}
