"""examples/relay.py does not start with an invalid gateway address."""

from __future__ import annotations

import sys

import pytest

from tests.oblivious.relay_example import relaying


@pytest.mark.parametrize(
    ("gateway", "said"),
    [
        ("https://collector.example", "a collector's ends in /ohttp"),
        ("https://collector.example:8443/", "a collector's ends in /ohttp"),
        ("http://collector.example/ohttp", "must be https://"),
    ],
)
def test_a_wrong_gateway_is_a_usage_error(
    gateway: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["relay.py", gateway])
    with pytest.raises(SystemExit) as ended:
        relaying.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
