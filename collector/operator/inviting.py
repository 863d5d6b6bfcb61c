"""Invitations: one-time words, shown once and stored as hashes; an invited study takes no report without one.

For a secure sum, the study's author makes them: a word for each person, and for each node the hashes of the
words that devices will show it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from shutil import rmtree

from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.keys import hash_key, new_word
from collector.storage.invitations import (
    add_invitations,
    add_list,
    disable_invitations,
    has_values,
    revoke_invitations,
)
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.fields import printable
from ldp_client.documents.public import PublicField
from ldp_client.files.disk import write_new
from ldp_client.secure_sum.messages import node_invitation
from ldp_client.words.text import counted
from schemas import Study
from schemas.channel_warnings import names_in_words

INVITATION_BYTES = 16
MOST_AT_ONCE = 1_000_000
HASH_BYTES = 32
# The most characters of an address that are shown.
MOST_CHARACTERS = 200
LIST_OF = re.compile(r"# invitations to (?P<study>\S+) at (?P<node>\S+), node (?P<place>[0-9]{1,4})\n")


NO_KEY = (
    "no invitation_key is set, and the database's log would tell which invitation sent which report: start"
    " the server in the folder that has ldpkit.toml, or set LDPKIT_INVITATION_KEY"
)


def invite(
    session: Session,
    study_id: str,
    count: int,
    secret: bytes,
    public: Mapping[str, str] | None = None,
    by: str = audit_log.BY_TOKEN,
) -> list[str]:
    """Make invitations; from now on the study takes invited reports only.

    Args:
        session: the transaction.
        study_id: the study.
        count: how many invitations to make.
        secret: the bytes of the setting invitation_key.
        public: the values of the study's public fields that the invitations carry.
        by: the name of the key that makes them.

    Raises:
        InputError: the study takes no such invitations.
    """
    if _is_summed(session, study_id):
        raise InputError(
            f"study {study_id} is a secure sum: its author makes invitations for all nodes at once, with "
            "`ldpkit node invite`, and each node's operator takes them with --file",
            code="ticket.secure_sum",
        )
    _refuse_over(session, study_id)
    _refuse_tokens(session, study_id)
    carried = _carried(session, study_id, public or {})
    invitations = [new_word(INVITATION_BYTES) for _ in range(count)]
    add_invitations(session, _number(session, study_id), map(hash_key, invitations), secret, carried)
    audit_log.record(session, by, "invite", study_id, counted(count, "invitation"))
    return invitations


def _refuse_over(session: Session, study_id: str) -> None:
    """Raise InputError if the study was closed or deleted."""
    state = store.study_state(session, study_id)
    if state is not None and (state.closed or state.deleted):
        how = "deleted" if state.deleted else "closed"
        raise InputError(
            f"study {study_id} was {how}: its invitations admit no reports, and none was made",
            code="ticket.study_closed",
        )


def _refuse_tokens(session: Session, study_id: str) -> None:
    """Raise InputError if the study takes tokens: invitations made here would link people and reports."""
    study = _current(session, study_id)
    if study is not None:
        refuse_tokens(study)


def refuse_tokens(study: Study) -> None:
    """Raise InputError if this study takes tokens."""
    if study.channel is not None and study.channel.tokens is not None:
        raise InputError(
            f"study {study.id} takes tokens, so that people and reports cannot be linked: its issuer makes "
            "the invitations, with `ldpkit issuer invite`",
            code="ticket.issuer_gives_them",
        )


def refuse_ended(session: Session, study_id: str, today: date, late: timedelta) -> None:
    """Raise InputError if no version takes reports any more. late: days of grace after the last day."""
    last = _last_day(session, study_id)
    if last is None or today - last <= late:
        return
    study = _current(session, study_id)
    summed = study is not None and study.protocol is not None
    advice = (
        "its author can ask again under another id"
        if summed
        else "publish a version with a later `closes` first"
    )
    raise InputError(
        f"study {study_id} ended on {last}: its invitations admit no reports, and none was made or taken; "
        f"{advice}",
        code="ticket.study_over",
    )


def _last_day(session: Session, study_id: str) -> date | None:
    """Return the latest `closes` of all versions, or None if a version has none.

    All versions count, because an earlier version takes reports until its own last day.
    """
    state = store.study_state(session, study_id)
    if state is None or state.closes is None:
        return None
    days = [state.closes]
    for version in store.document_digests(session, state.number):
        canonical = store.canonical_bytes(session, study_id, version)
        closes = None if canonical is None else Study.from_json(canonical).closes
        if closes is None:
            return None
        days.append(date.fromisoformat(closes))
    return max(days)


def warnings_of_invitations(session: Session, study_id: str) -> list[str]:
    """Return a warning for each field that a study's invitations carry if its values may name a person."""
    study = _current(session, study_id)
    return names_in_words(study) if study else []


def _carried(session: Session, study_id: str, public: Mapping[str, str]) -> dict[str, str]:
    study = _current(session, study_id)
    return {} if study is None else values_of(study, public)


def values_of(study: Study, public: Mapping[str, str]) -> dict[str, str]:
    """Return the values that invitations carry, spelt as in reports. Raises InputError if they do not fit."""
    fields = _carried_by(study)
    for name in public:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InputError(
                f"public field {name[:64]}: invitations to {study.id} carry {known}",
                code="ticket.unknown_public_field",
            )
    for name in fields:
        if name not in public:
            raise InputError(
                f"public field {name}: its value is missing, which invitations carry",
                code="ticket.public_value_missing",
            )
    try:
        return {name: field.value_of(public[name]) for name, field in fields.items()}
    except AnswerError as error:
        raise InputError(
            f"public field {error.field}: {error.problem}", code="ticket.public_value_invalid"
        ) from None


def list_text(study_id: str, node: str, place: int, hashes: Iterable[bytes]) -> str:
    """Return a node's list: a header, then each hash. node: its address. place: its index in the protocol."""
    lines = [f"# invitations to {study_id} at {node}, node {place + 1}", *(each.hex() for each in hashes)]
    return "\n".join(lines) + "\n"


def take_list(session: Session, study_id: str, text: str, secret: bytes, keys: str, by: str) -> str:
    """Accept the invitations of a node's list; return their number and the node, in words.

    Args:
        session: the transaction.
        study_id: the study.
        text: the list.
        secret: the bytes of the setting invitation_key.
        keys: this node's keys, as a study names them.
        by: the name of the key that acts.

    Raises:
        InputError: the list is of another study or node, or was taken before, in whole or in part.
    """
    # Editors and mail programs may have changed the line ends.
    text = "\n".join(text.removeprefix("\ufeff").splitlines()) + "\n"
    whose = LIST_OF.match(text)
    try:
        hashes = {bytes.fromhex(line) for line in text[whose.end() if whose else 0 :].split()}
    except ValueError:
        hashes = {b""}
    if whose is None or {len(each) for each in hashes} != {HASH_BYTES} or len(hashes) > MOST_AT_ONCE:
        raise InputError(
            "--file: must be what `ldpkit node invite` wrote for this node", code="ticket.not_a_list"
        )
    if whose["study"] != study_id:
        raise InputError(
            f"--file: has the invitations to study {whose['study'][:64]}, not {study_id}",
            code="ticket.list_of_other_study",
        )
    _refuse_over(session, study_id)
    _refuse_tokens(session, study_id)
    _refuse_other_node(session, study_id, whose["node"], int(whose["place"]), keys)
    if not add_list(session, _number(session, study_id), hashes, secret):
        raise InputError(
            "--file: was taken in before, and nothing was changed: used invitations stay used",
            code="ticket.list_taken_before",
        )
    taken = counted(len(hashes), "invitation")
    audit_log.record(session, by, "take invitations", study_id, taken)
    return f"{taken} taken, of node {printable(whose['node'], MOST_CHARACTERS)}"


def _refuse_other_node(session: Session, study_id: str, named: str, place: int, keys: str) -> None:
    """Raise InputError unless the list is for this node: its invitations are valid at no other node.

    They are also invalid at another place in the protocol, because devices derive the shown words from the
    place.
    """
    study = _current(session, study_id)
    if study is None or study.protocol is None:
        return
    for index, node in enumerate(study.protocol.nodes):
        if (node.sealing_key + node.signing_key).hex() == keys and node.url == named:
            if index + 1 == place:
                return
            raise InputError(
                f"--file: was made for node {place} of {study_id}, which is node {index + 1} as published: "
                "have its author make invitations of the published document; nothing was changed",
                code="ticket.list_of_other_place",
            )
    raise InputError(
        f"--file: is the list of node {printable(named, MOST_CHARACTERS)}, which has other keys than this "
        "node: nothing was changed",
        code="ticket.list_of_other_node",
    )


def disable(session: Session, study_id: str, by: str) -> None:
    """Forget a study's invitations and admit reports without invitations. Raises InputError.

    If invitations carry public values, nothing is changed: no report is taken without these values.
    """
    if _is_summed(session, study_id):
        raise InputError(
            f"study {study_id} is a secure sum: without invitations, an attacker could send so many shares "
            "that one person's answer is alone in the sum",
            code="ticket.disable_secure_sum",
        )
    carried = ", ".join(carried_fields(session, study_id))
    if carried:
        raise InputError(
            f"the invitations to {study_id} carry {carried}, which every report needs: nothing was "
            "changed. To admit all reports, publish a version without such fields; --revoke-all forgets "
            "invitations",
            code="ticket.disable_carries_values",
        )
    number = _number(session, study_id)
    if has_values(session, number):
        raise InputError(
            f"invitations to an earlier version of {study_id} carry public values, without which no report "
            "of that version is taken, however late: nothing was changed. A version without such fields lets "
            "everybody in already, unless other invitations were made; --revoke-all, then --disable, "
            "gives up both",
            code="ticket.disable_earlier_version",
        )
    disable_invitations(session, number)
    audit_log.record(session, by, "disable invitations", study_id)


def revoke(session: Session, study_id: str, by: str) -> None:
    """Forget a study's invitations, so that only new ones admit reports. Raises InputError.

    A secure sum must be closed first: while it is open, its list could be taken in a second time.
    """
    state = store.study_state(session, study_id)
    if _is_summed(session, study_id) and state is not None and not state.closed:
        raise InputError(
            f"study {study_id} is a secure sum: its list could be taken in twice. Restore its "
            "invitation_key; if it is lost, see docs/operating.md, If `ldpkit.toml` is lost",
            code="ticket.revoke_secure_sum",
        )
    revoke_invitations(session, _number(session, study_id))
    audit_log.record(session, by, "revoke invitations", study_id)


def carried_fields(session: Session, study_id: str) -> dict[str, PublicField]:
    """Return the public fields whose values the invitations to a study carry now."""
    study = _current(session, study_id)
    return _carried_by(study) if study else {}


def _carried_by(study: Study) -> dict[str, PublicField]:
    return {field.id: field for field in study.carried}


def _is_summed(session: Session, study_id: str) -> bool:
    study = _current(session, study_id)
    return study is not None and study.protocol is not None


def _current(session: Session, study_id: str) -> Study | None:
    document = store.find_document(session, study_id)
    return None if document is None else Study.from_json(document.canonical)


def _number(session: Session, study_id: str) -> int:
    study = store.locked_study(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}", code="study.unknown")
    return study.number


def node_hashes(words: list[str], node: int) -> list[bytes]:
    """Return the hashes of these invitations for a node, sorted, so that their order is lost."""
    return sorted(hash_key(node_invitation(word, node)) for word in words)


def write_invitations(study: Study, count: int, folder: str) -> list[tuple[str, str]]:
    """Write new invitations and each node's list into a new folder; return each node's address and file.

    A node's list, or the words that devices show a node, cannot be used as invitations at any node. Raises
    InputError.
    """
    assert study.protocol is not None
    refuse_tokens(study)
    if not study.protocol.min_devices <= count <= MOST_AT_ONCE:
        problem = f"must be from {study.protocol.min_devices} (devices − max_faulty) to {MOST_AT_ONCE}"
        raise InputError(f"--count {count}: {problem}", code="ticket.count_invalid")
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", code="files.folder_not_made") from None
    try:
        return _write_lists(study, [new_word(INVITATION_BYTES) for _ in range(count)], folder)
    except InputError:
        # A partial set of lists is useless, and would block another try with the same folder.
        rmtree(folder, ignore_errors=True)
        raise


def _write_lists(study: Study, words: list[str], folder: str) -> list[tuple[str, str]]:
    assert study.protocol is not None
    write_new(os.path.join(folder, "invitations.txt"), "\n".join(words) + "\n", 0o600)
    places = []
    for index, node in enumerate(study.protocol.nodes):
        path = os.path.join(folder, f"node-{index + 1}.txt")
        write_new(path, list_text(study.id, node.url, index, node_hashes(words, index)), 0o600)
        places.append((node.url, path))
    return places
