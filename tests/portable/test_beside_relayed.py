"""In JavaScript, a relayed report is never sent together with, or soon after, a direct request.

The clock of the device is the test's, no server is asked, and who answers settles nothing.
"""

import json

import pytest

from tests.portable import npm

COLLECTOR, RELAY = "collector.example", "relay.example"


@pytest.fixture(scope="module")
def found():
    return json.loads(npm.node("beside_relayed.mjs"))


def test_direct_report_is_sent_before_relayed_reports(found):
    assert found["together"] == [COLLECTOR]


def test_two_relayed_reports_are_not_sent_together(found):
    assert found["alone"] == [RELAY]


def test_relay_is_not_used_minutes_after_a_direct_report(found):
    assert found["minutes"] == [[COLLECTOR], []]


def test_corrected_clock_sends_nothing_at_once(found):
    assert found["jumped"] == []


def test_relay_is_not_used_right_after_a_study_fetch(found):
    assert found["fetched"] == []


def test_relay_is_not_used_after_earlier_fetches_of_other_studies(found):
    """A later visit does not erase an earlier one, even before the device has a relayed study."""
    assert set(found["before"]) == {"one", "another", "visited", "atOnce"}
    assert all(flushes == [[], []] for flushes in found["before"].values())


def test_retry_respects_a_fetch_by_another_tab(found):
    """A deletion that the person requested at once is retried anyway."""
    once = [RELAY, COLLECTOR]
    assert found["since"] == [once, once, [*once, RELAY, RELAY]]


def test_unsettled_report_does_not_block_the_other_kind(found):
    assert found["turns"] == [True, True]
    assert found["both"] == 0


def test_no_direct_retry_within_an_hour_of_a_relayed_report(found):
    assert found["seenAfter"] == 0
