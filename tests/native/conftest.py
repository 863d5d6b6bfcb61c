"""The core, compiled once for all tests of this folder."""

from pathlib import Path

import pytest

from conformance.native import Port, compiled
from tests.kit.programs import need


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the shared library. Skips the test without a compiler."""
    need("gcc")
    return compiled(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="session")
def port(library: Path) -> Port:
    return Port(library)
