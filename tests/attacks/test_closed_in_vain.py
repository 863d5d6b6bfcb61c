"""A secure sum is closed permanently, and then its total cannot be written.

Defence: `node close`: contacts no node before it has checked that both of its files can be written.
"""

import json

import pytest

from ldp_client.files.disk import refuse_unwritable
from ldpkit.cli import main
from tests.secure_sum.conftest import TOKEN, close_study


@pytest.mark.parametrize("out", ["nosuch/total.json", "folder.json", "folder", "file/total.json"])
def test_nodes_stay_open_if_total_cannot_be_written(network, tmp_path, monkeypatch, capsys, out):
    study = network.publish("ever")
    network.answer(15)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_TOKEN", " ".join([TOKEN] * 3))
    (tmp_path / "study.json").write_text(json.dumps(study.document))
    (tmp_path / "file").touch()
    for folder in ("folder.json", "folder.transcript.json"):
        (tmp_path / folder).mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(["node", "close", "study.json", "--out", out]) == 3
    assert "cannot write" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    for node in network.nodes:
        assert node.get("/shares").status_code == 409
    assert close_study(study, [TOKEN] * 3).total.questions["ever"].n == 15


def test_write_check_leaves_files_unchanged(tmp_path):
    old = tmp_path / "total.json"
    old.write_text("old")
    refuse_unwritable(str(old))
    refuse_unwritable(str(tmp_path / "new.json"))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("total.json", "old")]
