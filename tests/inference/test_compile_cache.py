"""Compiled programs are kept in the user's cache folder, or nowhere if it cannot be made."""

from pathlib import Path

import jax
import pytest

from inference import compiling
from inference.compiling import cache_folder, use_compile_cache


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/home/ann"}, Path("/home/ann/.cache/ldpkit/jax")),
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/ann"}, Path("/var/ann/ldpkit/jax")),
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "relative"}, Path("/home/ann/.cache/ldpkit/jax")),
        ({"HOME": "/home/ann", "LDPKIT_CACHE": "/scratch"}, Path("/scratch")),
        ({"HOME": "/home/ann", "LDPKIT_CACHE": "off"}, None),
        ({}, None),
    ],
)
def test_cache_folder_follows_the_environment(environment, folder):
    assert cache_folder(environment) == folder


@pytest.fixture
def no_cache_yet():
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.usefixtures("no_cache_yet")
def test_uncreatable_cache_folder_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    assert use_compile_cache({"LDPKIT_CACHE": str(tmp_path / "file" / "cache")}) is None
    assert jax.config.values["jax_compilation_cache_dir"] is None


@pytest.mark.usefixtures("no_cache_yet")
def test_cache_folder_is_made_and_set_in_jax(tmp_path):
    folder = tmp_path / "new" / "cache"
    assert use_compile_cache({"LDPKIT_CACHE": str(folder)}) == folder
    assert folder.is_dir()
    assert jax.config.values["jax_compilation_cache_dir"] == str(folder)


def test_compiling_works_without_quick_options(monkeypatch):
    compiling._quick.cache_clear()
    monkeypatch.setattr(compiling, "_QUICK", {"xla_cpu_no_such_option": False})
    try:
        assert compiling.compiled(lambda x: x + 1)(1) == 2
        assert compiling.Program(lambda x: x + 2, runs_once=True)(1) == 3
    finally:
        compiling._quick.cache_clear()


def test_installed_jax_has_quick_options():
    assert compiling._quick() == compiling._QUICK
