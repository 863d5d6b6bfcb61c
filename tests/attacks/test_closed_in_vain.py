"""Close a secure sum for good, and then have nowhere to write its total.

Defence: `secure-sum close`: asks no node before it has seen that both of its files can be written.
"""

import json

import pytest

from ldp_client.cli import main
from ldp_client.files.disk import refuse_unwritable
from tests.secure_sum.conftest import TOKEN, close_study


@pytest.mark.parametrize("out", ["nosuch/total.json", "folder.json", "folder", "file/total.json"])
def test_no_node_is_closed_for_a_total_that_cannot_be_written(network, tmp_path, monkeypatch, capsys, out):
    study = network.publish("ever")
    network.answer(15)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_TOKEN", " ".join([TOKEN] * 3))
    (tmp_path / "study.json").write_text(json.dumps(study.document))
    (tmp_path / "file").touch()
    for folder in ("folder.json", "folder.transcript.json"):
        (tmp_path / folder).mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(["secure-sum", "close", "study.json", "--out", out]) == 3
    assert "cannot write" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    for node in network.nodes:
        assert node.get("/shares").status_code == 409
    assert close_study(study, [TOKEN] * 3).total.questions["ever"].n == 15


def test_a_file_that_can_be_written_is_left_as_it_was(tmp_path):
    old = tmp_path / "total.json"
    old.write_text("old")
    refuse_unwritable(str(old))
    refuse_unwritable(str(tmp_path / "new.json"))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("total.json", "old")]
