"""Invitations to a secure sum: a word for each person, and hashes of what each node will be shown."""

from __future__ import annotations

import os
import secrets

from collector.operator.inviting import INVITATION_BYTES, MOST_AT_ONCE
from collector.storage.keys import hash_key
from ldp_client.documents.errors import InputError
from ldp_client.files.writing import write_new
from ldp_client.secure_sum.messages import node_invitation
from schemas import Study


def node_hashes(words: list[str], node: int) -> list[bytes]:
    """What the node at this place of the route keeps of these invitations, ascending: not in their order."""
    return sorted(hash_key(node_invitation(word, node)) for word in words)


def write_invitations(study: Study, count: int, folder: str) -> list[tuple[str, str]]:
    """Write new invitations and each node's list into a new folder; (node's address, its file) for each.

    Nobody who has a node's list, or sees what devices show that node, can use it there or at another one.
    Raises InputError.
    """
    assert study.route is not None
    if not study.route.fewest <= count <= MOST_AT_ONCE:
        problem = f"must be from {study.route.fewest} (clients − tolerate) to {MOST_AT_ONCE}"
        raise InputError(f"--count {count}: {problem}")
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    words = [secrets.token_urlsafe(INVITATION_BYTES) for _ in range(count)]
    write_new(os.path.join(folder, "invitations.txt"), "\n".join(words) + "\n", 0o600)
    places = []
    for index, node in enumerate(study.route.nodes):
        path = os.path.join(folder, f"node-{index + 1}.txt")
        write_new(path, "\n".join(each.hex() for each in node_hashes(words, index)) + "\n", 0o600)
        places.append((node.url, path))
    return places
