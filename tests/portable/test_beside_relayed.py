"""In JavaScript a report leaves through its relay alone, beside nothing in the clear and long after that.

The clock of the device is the test's, no server is asked, and who answers settles nothing.
"""

import json

import pytest

from tests.portable import npm

COLLECTOR, RELAY = "collector.example", "relay.example"


@pytest.fixture(scope="module")
def found():
    return json.loads(npm.node("beside_relayed.mjs"))


def test_of_two_kinds_one_leaves_first_what_was_never_tried(found):
    assert found["together"] == [COLLECTOR]


def test_of_two_through_a_relay_one_leaves(found):
    assert found["alone"] == [RELAY]


def test_nothing_leaves_through_it_minutes_after_a_report_in_the_clear(found):
    assert found["minutes"] == [[COLLECTOR], []]


def test_a_clock_that_was_behind_sends_nothing_at_once(found):
    assert found["jumped"] == []


def test_nothing_leaves_through_it_after_a_study_was_fetched_for_the_device(found):
    assert found["fetched"] == []


def test_nor_after_other_studies_were_fetched_before_it_had_any_report(found):
    """A visit is forgotten by no later one, nor where the device has no relayed study yet."""
    assert set(found["before"]) == {"one", "another", "visited", "atOnce"}
    assert all(flushes == [[], []] for flushes in found["before"].values())


def test_an_attempt_to_come_knows_of_what_another_tab_fetched_since(found):
    """A deletion that the person wants at once is tried again whatever that tells."""
    once = [RELAY, COLLECTOR]
    assert found["since"] == [once, once, [*once, RELAY, RELAY]]


def test_what_is_never_settled_keeps_neither_kind_for_good(found):
    assert found["turns"] == [True, True]
    assert found["both"] == 0


def test_what_was_tried_in_the_clear_shows_no_address_in_the_hour_after(found):
    assert found["seenAfter"] == 0
