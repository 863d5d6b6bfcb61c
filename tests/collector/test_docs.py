"""The statements of docs/operate.md are true, and so is what problems advise."""

import re
import shlex
from dataclasses import fields

from collector import problems
from collector.settings import Settings
from ldp_client.device.requests import FINAL
from tests.kit.collectors import REPOSITORY
from tests.kit.commands import parsed

TEXT = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")


def test_page_names_every_setting():
    """tests/test_site.py compares the page that has their defaults."""
    section = TEXT.split("## Settings\n")[1].split("\n#")[0]
    assert {field.name for field in fields(Settings)} <= set(re.findall(r"`(\w+)`", section))


def test_every_documented_command_parses():
    lines = re.findall(r"^(?:LDPKIT_\S+ |ExecStart=\S*/)?ldpkit ([^#\n]+)", TEXT, re.MULTILINE)
    commands = [shlex.split(line) for line in lines]
    assert {command[0] for command in commands} >= {"serve", "keys", "backup", "export"}
    for command in commands:
        if command[0] not in ("answer", "fit", "check", "keygen", "sign"):
            assert parsed(command) is not None


def test_problems_match_their_table_and_device_behaviour():
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    for status in {kind.status for kind in kinds if kind.retry_after is not None} - {425}:
        assert f"| {status}, `Retry-After` |" in TEXT
    final = [kind for kind in kinds if "drop" in kind.advice.lower()]
    assert {kind.name for kind in final} == set(FINAL)
    assert all("if `digest` is" in kind.advice for kind in final)
