"""JAX's compiled programs, kept on disk: the second fit of a study does not compile again.

The folder is `ldpkit/jax` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache), or the one that
LDPKIT_CACHE names; LDPKIT_CACHE=off turns it off. It holds programs only, no data, and may be deleted at
any time. A cache folder that JAX was told of already is left in place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import jax

OFF = "off"


def use_compile_cache(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Keep compiled programs; the folder, or None where there is none. Never raises."""
    told = jax.config.values["jax_compilation_cache_dir"]
    if told is not None:
        return Path(told)
    folder = cache_folder(environment)
    if folder is None or not _writable(folder):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Where compiled programs are kept; None when that is turned off, or when there is no home."""
    named = environment.get("LDPKIT_CACHE", "")
    if named.lower() == OFF:
        return None
    if named:
        return Path(named)
    parent = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(parent):
        return Path(parent) / "ldpkit" / "jax"
    home = environment.get("HOME", "")
    return Path(home) / ".cache" / "ldpkit" / "jax" if os.path.isabs(home) else None


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
