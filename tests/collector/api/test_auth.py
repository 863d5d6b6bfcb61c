"""Keys as they come in headers."""

from __future__ import annotations

import pytest


@pytest.mark.attack(15)
@pytest.mark.parametrize("scheme", ["Basic", "basic", "Bearer", "Digest"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/v1/studies/habits/export"])
def test_non_ascii_key_is_rejected_as_wrong(habits, caplog, scheme, path):
    """Send a key that is no text: it is a wrong key, and no server error with lines in the log."""
    answer = habits.client.get(path, headers={"Authorization": f"{scheme} \xff"})
    assert answer.status_code == 401
    assert "a request failed" not in caplog.text
