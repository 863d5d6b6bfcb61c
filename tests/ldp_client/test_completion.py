"""A shell completes the command's words, options and files: in each shell that is installed here."""

import shutil
import subprocess

import pytest

from ldp_client import cli
from ldp_client.commands.completion import SHELLS

# What bash sets before it asks a function, and what it reads after.
BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
_shtab_ldpkit
printf "%s\\n" "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    from ldp_client.commands.completion import completion_of

    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        (folder / shell).write_text(completion_of(cli.build_parser(), shell))
    return folder


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_is_one_that_its_shell_reads(scripts, shell):
    text = (scripts / shell).read_text()
    assert "keygen" in text
    assert "--max-epsilon" in text or "max-epsilon" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", scripts / shell], check=True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["ldpkit", "perturb", "--bl"], {"--blanks-refuse"}),
        (["ldpkit", "aud"], {"audit"}),
        (["ldpkit", "study", "key"], {"keygen"}),
        (["ldpkit", "completion", "z"], {"zsh"}),
        (["ldpkit", "study", "check", "stu"], {"study.json"}),
    ],
)
def test_bash_completes(scripts, tmp_path, words, found):
    (tmp_path / "study.json").write_text("{}")
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", scripts / "bash", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {word.strip() for word in done.stdout.splitlines()} == found


def test_the_command_prints_it(capsys):
    assert cli.main(["completion", "fish"]) == 0
    assert "complete -c ldpkit" in capsys.readouterr().out
