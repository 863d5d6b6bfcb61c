"""An absent package of an extra is named with it; a lost file of ldpkit's own is not."""

from __future__ import annotations

import pytest

import ldpkit
from ldp_client.documents.errors import MissingExtraError
from ldp_client.files.lacking import OWN
from ldpkit.cli import main
from schemas import Study
from summaries.engines import running
from summaries.extras import naming_extra
from tests import studies
from tests.kit.errors import raises


def absent(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("package", OWN[:1])
def test_missing_own_module_is_not_reported_as_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = absent(f"{package}.inside")

    def lose(*_arguments: object) -> None:
        raise lost

    with pytest.raises(ModuleNotFoundError), naming_extra():
        lose()
    monkeypatch.setattr("ldpkit.cli.cli.get_command", lose)
    with pytest.raises(ModuleNotFoundError):
        main(["demo"])
    monkeypatch.setattr(ldpkit, "import_module", lose)
    monkeypatch.delitem(vars(ldpkit), "plan", raising=False)
    with pytest.raises(ModuleNotFoundError):
        _ = ldpkit.plan


def test_missing_pyarrow_during_dataset_search_is_reported_as_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_arguments: object) -> None:
        raise absent("pyarrow.parquet")

    monkeypatch.setattr(running, "find_dataset", lacks)
    with raises(MissingExtraError, "extra.missing", "ldpkit[tables]"):
        running.summarize_dataset(Study(studies.document(studies.YES_NO)), "nowhere")
