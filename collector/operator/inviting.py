"""Invitations: one-time words, shown once and kept as hashes, without which a study takes no report.

For a secure sum its author makes them: a word for each person, and for each node the hashes of what devices
will show it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from shutil import rmtree

from sqlalchemy.orm import Session

from collector.storage import audit_log, queries
from collector.storage.invitations import (
    add_invitations,
    add_list,
    forget_invitations,
    has_values,
    lift_invitations,
)
from collector.storage.keys import hash_key, new_word
from ldp_client.commands.channel_warnings import invitation_notes, names_in_words
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.fields import printable
from ldp_client.documents.public import PublicField
from ldp_client.files.disk import write_new
from ldp_client.secure_sum.messages import node_invitation
from ldp_client.words.text import counted
from schemas import Study

INVITATION_BYTES = 16
MOST_AT_ONCE = 1_000_000
HASH_BYTES = 32
# The longest part of an address that is shown.
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
    """New invitations, and the study is for invited reports only from now on.

    secret: of the setting invitation_key. public: the values of the study's public fields that they carry.
    by: the key with which they are made, by name. Raises InputError.
    """
    if _is_summed(session, study_id):
        raise InputError(
            f"study {study_id} is a secure sum: its author makes invitations for all nodes at once, with "
            "`ldpkit secure-sum invite`, and each node's operator takes them with --file",
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
    """Raises InputError for a study that takes nobody any more."""
    state = queries.study_state(session, study_id)
    if state is not None and (state.closed or state.deleted):
        how = "deleted" if state.deleted else "closed"
        raise InputError(
            f"study {study_id} was {how}: its invitations let nobody in, and none was made",
            code="ticket.study_closed",
        )


def _refuse_tokens(session: Session, study_id: str) -> None:
    """Raises InputError for a study that takes tokens: an invitation here would join person and report."""
    study = _current(session, study_id)
    if study is not None:
        refuse_tokens(study)


def refuse_tokens(study: Study) -> None:
    """The same, of a study at hand."""
    if study.channel is not None and study.channel.tokens is not None:
        raise InputError(
            f"study {study.id} takes tokens: its issuer makes the invitations, with `ldpkit issuer invite`, "
            "so that nobody can join a person and a report; the collector makes none",
            code="ticket.issuer_gives_them",
        )


def refuse_ended(session: Session, study_id: str, today: date, late: timedelta) -> None:
    """Raises InputError where no version takes reports any more. late: how long past its last day."""
    last = _last_day(session, study_id)
    if last is None or today - last <= late:
        return
    study = _current(session, study_id)
    summed = study is not None and study.route is not None
    advice = (
        "its author can ask anew under another id"
        if summed
        else "publish a version with a later `closes` first"
    )
    raise InputError(
        f"study {study_id} ended on {last}: its invitations let nobody in, and none was made or "
        f"taken; {advice}",
        code="ticket.study_over",
    )


def _last_day(session: Session, study_id: str) -> date | None:
    """The last of all versions' last days, if each has one: an earlier one takes reports until its own."""
    state = queries.study_state(session, study_id)
    if state is None or state.closes is None:
        return None
    days = [state.closes]
    for version in queries.document_digests(session, state.number):
        canonical = queries.canonical_bytes(session, study_id, version)
        closes = None if canonical is None else Study.from_json(canonical).closes
        if closes is None:
            return None
        days.append(date.fromisoformat(closes))
    return max(days)


def warnings_of_invitations(session: Session, study_id: str) -> list[str]:
    """A line where they tell whose report came through a relay, and for each field that they carry and whose
    values may name a person.
    """
    study = _current(session, study_id)
    return [*invitation_notes(study), *names_in_words(study)] if study else []


def _carried(session: Session, study_id: str, public: Mapping[str, str]) -> dict[str, str]:
    study = _current(session, study_id)
    return {} if study is None else values_of(study, public)


def values_of(study: Study, public: Mapping[str, str]) -> dict[str, str]:
    """What invitations carry, as reports spell it. Raises InputError for what the study does not want so."""
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
    """A node's list: whose it is, and below it each hash. node: its address. place: in the route, from 0."""
    lines = [f"# invitations to {study_id} at {node}, node {place + 1}", *(each.hex() for each in hashes)]
    return "\n".join(lines) + "\n"


def take_list(session: Session, study_id: str, text: str, secret: bytes, keys: str, by: str) -> str:
    """Let in who has the invitations of a node's list; how many, and at which node, in words.

    secret, by: as `invite` takes them. keys: this node's, as a study names them. Raises InputError for
    another study's list or another node's, and for one that was taken in before, whole or in part.
    """
    # Line ends as any editor or mail program leaves them.
    text = "\n".join(text.removeprefix("\ufeff").splitlines()) + "\n"
    whose = LIST_OF.match(text)
    try:
        hashes = {bytes.fromhex(line) for line in text[whose.end() if whose else 0 :].split()}
    except ValueError:
        hashes = {b""}
    if whose is None or {len(each) for each in hashes} != {HASH_BYTES} or len(hashes) > MOST_AT_ONCE:
        raise InputError(
            "--file: must be what `ldpkit secure-sum invite` wrote for this node", code="ticket.not_a_list"
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
    """Raises InputError unless the list is this node's: at another one nobody's invitation would be good.

    Nor would it be at another place of the route, of which devices make what they show.
    """
    study = _current(session, study_id)
    if study is None or study.route is None:
        return
    for index, node in enumerate(study.route.nodes):
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


def lift(session: Session, study_id: str, by: str) -> None:
    """Forget a study's invitations and let everybody's reports in. Raises InputError.

    Where invitations carry public values nothing is changed: no report comes in without them.
    """
    if _is_summed(session, study_id):
        raise InputError(
            f"study {study_id} is a secure sum: were everybody let in, somebody could send so many shares "
            "that one person's answer is alone in the sum",
            code="ticket.lift_secure_sum",
        )
    carried = ", ".join(carried_fields(session, study_id))
    if carried:
        raise InputError(
            f"the invitations to {study_id} carry {carried}, without which no report is taken: nothing was "
            "changed. Publish a version without such fields to let everybody in; --forget forgets "
            "invitations",
            code="ticket.lift_carries_values",
        )
    number = _number(session, study_id)
    if has_values(session, number):
        raise InputError(
            f"invitations to an earlier version of {study_id} carry public values, without which no report "
            "of that version is taken, however late: nothing was changed. A version without such fields lets "
            "everybody in already, unless other invitations were made; --forget, then --lift, gives up both",
            code="ticket.lift_earlier_version",
        )
    lift_invitations(session, number)
    audit_log.record(session, by, "lift invitations", study_id)


def forget(session: Session, study_id: str, by: str) -> None:
    """Forget a study's invitations, so that only new ones let a report in. Raises InputError.

    Those to a secure sum once it is closed: while it is open, its list could be taken in a second time.
    """
    state = queries.study_state(session, study_id)
    if _is_summed(session, study_id) and state is not None and not state.closed:
        raise InputError(
            f"study {study_id} is a secure sum: its list could be taken in twice. Put its invitation_key "
            "back; where it is lost, see docs/operating.md, If `ldpkit.toml` is lost",
            code="ticket.forget_secure_sum",
        )
    forget_invitations(session, _number(session, study_id))
    audit_log.record(session, by, "forget invitations", study_id)


def carried_fields(session: Session, study_id: str) -> dict[str, PublicField]:
    """The public fields whose values the invitations to a study carry now."""
    study = _current(session, study_id)
    return _carried_by(study) if study else {}


def _carried_by(study: Study) -> dict[str, PublicField]:
    return {field.id: field for field in study.carried}


def _is_summed(session: Session, study_id: str) -> bool:
    study = _current(session, study_id)
    return study is not None and study.route is not None


def _current(session: Session, study_id: str) -> Study | None:
    document = queries.find_document(session, study_id)
    return None if document is None else Study.from_json(document.canonical)


def _number(session: Session, study_id: str) -> int:
    study = queries.locked_study(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}", code="study.unknown")
    return study.number


def node_hashes(words: list[str], node: int) -> list[bytes]:
    """What the node at this place of the route keeps of these invitations, ascending: not in their order."""
    return sorted(hash_key(node_invitation(word, node)) for word in words)


def write_invitations(study: Study, count: int, folder: str) -> list[tuple[str, str]]:
    """Write new invitations and each node's list into a new folder; (node's address, its file) for each.

    Nobody who has a node's list, or sees what devices show that node, can use it there or at another one.
    Raises InputError.
    """
    assert study.route is not None
    refuse_tokens(study)
    if not study.route.fewest <= count <= MOST_AT_ONCE:
        problem = f"must be from {study.route.fewest} (clients − tolerate) to {MOST_AT_ONCE}"
        raise InputError(f"--count {count}: {problem}", code="ticket.count_invalid")
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", code="files.folder_not_made") from None
    try:
        return _write_lists(study, [new_word(INVITATION_BYTES) for _ in range(count)], folder)
    except InputError:
        # With a part of the lists nobody could begin, nor write them there again.
        rmtree(folder, ignore_errors=True)
        raise


def _write_lists(study: Study, words: list[str], folder: str) -> list[tuple[str, str]]:
    assert study.route is not None
    write_new(os.path.join(folder, "invitations.txt"), "\n".join(words) + "\n", 0o600)
    places = []
    for index, node in enumerate(study.route.nodes):
        path = os.path.join(folder, f"node-{index + 1}.txt")
        write_new(path, list_text(study.id, node.url, index, node_hashes(words, index)), 0o600)
        places.append((node.url, path))
    return places
