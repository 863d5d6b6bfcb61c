"""What all tests share: a folder of compiled JAX programs, kept between runs and by parallel workers."""

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings

from tests.kit import serving
from tests.kit.guard import Guard
from tests.kit.programs import need

serve, raw_server = serving.serve, serving.raw_server
endless_server, stalling_server = serving.endless_server, serving.stalling_server
# A busy machine stands still for longer than an example may take.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


class FailuresAtOnce:
    """Name a failed test when it fails, in case that the run is ended before its summary."""

    def __init__(self, config):
        self._plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report):
        terminal = self._plugins.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\nFAILED {report.nodeid} ({report.when})")


def pytest_configure(config):
    """JAX reads these when it is first imported, in this process and in those that tests start."""
    # Processes that tests start would compile all modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if getattr(config, "cache", None) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("jax")))
        # Single operations too: a test that does without jit compiles hundreds, and others the same.
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    # The workers share the cores already: threads inside each would wait for one another, those of OpenBLAS
    # at full load. It reads this when NumPy is first imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # XLA's older way to compile what it fuses takes half the time, and what comes of it runs as fast.
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false"
    )
    # Tracing makes many objects that stay: looking for cycles among them takes a fifteenth of all time.
    gc.set_threshold(100_000, 50, 100)
    config.pluginmanager.register(Guard(), "guard")
    config.pluginmanager.register(FailuresAtOnce(config), "failures-at-once")
    # What is started in the background ignores it, and so would every command that a test interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip what needs an absent program; compile thoroughly where a file says that its programs run long.

    Elsewhere most run once or twice, and that costs more than it saves.
    """
    for marker in item.iter_markers("needs"):
        need(*marker.args)
    quick = item.get_closest_marker("long_runs") is None
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = str(quick).lower()
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_disable_most_optimizations", quick)


def pytest_collection_modifyitems(items):
    """Files with slow tests go first, so that no process waits at the end for another one's longest file."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def port():
    """A port of loopback for a server that the test starts."""
    with serving.held_port() as held:
        yield held


@pytest.fixture(autouse=True, scope="module")
def forgotten_programs():
    """What a file's tests compiled does not stay in memory; the folder above has it."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
