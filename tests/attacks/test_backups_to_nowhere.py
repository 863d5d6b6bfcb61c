"""`--out -` for a backup or a key wrote a file named `-`, and the shell's output file got only a message."""

from __future__ import annotations

import pytest

from ldpkit.cli import main


@pytest.mark.parametrize(
    "command",
    [
        "backup",
        "backup --database sqlite:///issuer.sqlite3",
        "keygen",
        "node keygen",
        "node invite study.json --count 2",
    ],
)
def test_out_to_standard_output_is_rejected_before_writing(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    for name in ("init", "issuer init"):
        folder = tmp_path / name.replace(" ", "-")
        more = ["--address", "http://127.0.0.1:9"] if name == "issuer init" else []
        assert main([*name.split(), str(folder), *more]) == 0
    monkeypatch.chdir(tmp_path / ("issuer-init" if "issuer" in command else "init"))
    before = {path.name for path in (tmp_path / "init").iterdir()}
    capsys.readouterr()
    code = main([*command.split(), "--out", "-"])
    said = capsys.readouterr()
    assert said.out == ""
    assert code == 2
    assert said.err.startswith("ldpkit: --out -")
    assert {path.name for path in (tmp_path / "init").iterdir()} == before
    assert not list(tmp_path.rglob("-*"))
