"""docs/data-holders.md is true: its table is made, its commands run, its constants are those of the code."""

import json
import re
from pathlib import Path

import pytest

from ldp_client import cli, mechanism_for
from ldp_client.mechanisms.tables.laplace import l1_distance
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity
from schemas import Report, Study

PAGE = (Path(__file__).parents[3] / "docs" / "data-holders.md").read_text()
ROUNDS = PAGE.partition("## In two rounds")[2].partition("\n## ")[0]
ONE_ROUND = PAGE.replace(ROUNDS, "")
UNIT = 1 << 20


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)


def test_the_guide_leads_from_tables_to_reports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (document,), (code,) = blocks("json"), blocks("python")
    Path("study.json").write_text(document)
    exec(code, {})
    commands = [line.split()[1:] for line in re.findall("^ldpkit perturb .*", ONE_ROUND, flags=re.M)]
    assert [cli.main(command) for command in commands] == [0, 0]
    study = Study.from_json(document)
    mechanism = mechanism_for(study.questions[0])
    for hospital in ("north", "south"):
        report = Report.from_json(Path(f"{hospital}.ndjson").read_bytes())
        count, entries = mechanism.entries(report.payloads["stay"])
        assert count == 4000
        # Σ y², days scaled to −1…1: about 0.26 a record.
        assert entries[-1] == pytest.approx(4000 * 0.26, rel=0.5)


def test_the_guides_two_rounds_end_in_narrower_bounds(tmp_path, monkeypatch, capsys):
    """Its study and commands, with much more ε: the tables are small."""
    monkeypatch.chdir(tmp_path)
    (text,), (code,) = blocks("json"), blocks("python")
    exec(code, {})
    document = json.loads(text)
    (stated,) = re.findall(r'"mechanism": (\{[^}]*"share"[^}]*\})', ROUNDS)
    document["questions"][0]["mechanism"] = {**json.loads(stated), "epsilon": "4", "delta": "1e-4"}
    Path("first.json").write_text(json.dumps(document))
    for line in re.findall(r"^(?:ldpkit|cat) .*", ROUNDS, flags=re.M):
        first, *words = line.split()
        if first == "cat":
            *parts, _, target = words
            Path(target).write_bytes(b"".join(Path(part).read_bytes() for part in parts))
        else:
            assert cli.main(words) == 0
    assert "stay: epsilon 16, delta 0.0004 are left" in capsys.readouterr().out
    second = Study.from_json(Path("second.json").read_text())
    assert (second.id, second.unit) == ("stays-2", "holder")
    low, high = map(float, second.questions[0].response.bounds)
    assert 0 <= low < 12.5 < high < 40
    assert (
        mechanism_for(second.questions[0]).entries(
            Report.from_json(Path("north-2.ndjson").read_bytes()).payloads["stay"]
        )[0]
        == 4000
    )


def test_the_constants_of_the_guide_are_those_of_the_code():
    def ddplr(intercept, average):
        return ddplr_sensitivity(UNIT, UNIT, intercept, average) / average / UNIT**2

    def l1(norm):
        return l1_distance(round(norm * UNIT), UNIT, 2, False, 1) / UNIT**2

    found = [ddplr(False, 1), ddplr(True, 1), ddplr(False, 2), ddplr(False, 10**6), l1(2**0.5), l1(1)]
    assert found == pytest.approx([2.121, 3.162, 2.83, 5.66, 6, 4.67], rel=2e-3)
    for constant in ("2.121", "3.162", "2.83", "5.66", "the truth is 6", "4.67"):
        assert constant in PAGE
