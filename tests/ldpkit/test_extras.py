"""A lost file of ldpkit's own is not taken for a missing extra."""

from __future__ import annotations

import pytest

import ldpkit
from ldpkit.cli import main
from ldpkit.lacking import OWN


def absent(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("package", OWN[:1])
def test_missing_own_module_is_not_reported_as_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = absent(f"{package}.inside")

    def lose(*_arguments: object) -> None:
        raise lost

    monkeypatch.setattr("ldpkit.cli.cli.get_command", lose)
    with pytest.raises(ModuleNotFoundError):
        main(["demo"])
    monkeypatch.setattr(ldpkit, "import_module", lose)
    monkeypatch.delitem(vars(ldpkit), "plan", raising=False)
    with pytest.raises(ModuleNotFoundError):
        _ = ldpkit.plan
