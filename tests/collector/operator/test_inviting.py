"""A node's list of invitations is taken whole, once, and whatever a mail program did to it."""

from __future__ import annotations

import pytest

from collector.keys import hash_key
from collector.operator.inviting import list_text, take_list
from collector.storage.invitations import add_invitations
from ldp_client.documents.errors import InputError
from tests.collector.conftest import count_invitations
from tests.kit.errors import raises

KEY = b"the key of this place"
NODE = "https://node.example.org"


@pytest.fixture
def writing(habits):
    with habits.collector.database.write() as session:
        yield session


@pytest.mark.parametrize("changed", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, str.rstrip])
def test_list_changed_by_mail_program_is_accepted(writing, changed):
    text = list_text("habits", NODE, 0, [hash_key(word) for word in "abc"])
    assert (
        take_list(writing, "habits", changed(text), KEY, "", "ann") == f"3 invitations taken, of node {NODE}"
    )
    with raises(InputError, "ticket.list_taken_before"):
        take_list(writing, "habits", text, KEY, "", "ann")


def test_overlapping_lists_are_rejected(writing):
    take_list(
        writing, "habits", list_text("habits", NODE, 0, [hash_key(word) for word in "abc"]), KEY, "", "ann"
    )
    with raises(InputError, "ticket.list_overlaps_another", "1", "2"):
        take_list(
            writing, "habits", list_text("habits", NODE, 0, [hash_key(word) for word in "cd"]), KEY, "", "ann"
        )
    assert count_invitations(writing, 1) == 3
    add_invitations(writing, 1, [hash_key("d")], KEY)
