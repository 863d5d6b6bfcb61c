"""Planning and calibration simulate people, and reject a study for data holders."""

import pytest

from ldpkit import cli
from schemas import Study
from tests import studies


@pytest.mark.parametrize("command", ["plan", "calibrate"])
def test_simulating_tables_of_holders_is_rejected(tmp_path, command, capsys):
    (tmp_path / "study.json").write_text(Study(studies.document(studies.TABLE, **studies.HOLDER)).to_json())
    assert cli.main([command, str(tmp_path / "study.json"), "--out", str(tmp_path / "out")]) == 3
    assert "power: tables of data holders cannot be simulated" in capsys.readouterr().err
