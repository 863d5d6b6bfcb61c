"""A study whose reports no device sends is not published."""

import pytest

from tests import studies


@pytest.mark.attack(7)
def test_collector_does_not_publish_too_large_report(make_harness):
    """A study's report is larger than any device sends, so that devices spend epsilon for nothing."""
    response = make_harness(body_limit=8 << 20).publish(studies.of_large_choices(97))
    assert response.status_code == 422
    assert "1048576 can be sent" in response.get_json()["detail"]
