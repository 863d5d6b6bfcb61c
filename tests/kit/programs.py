"""Programs and packages beyond `make test`'s own, for tests that need one.

A test that needs a program calls `need("node")`, or has the marker `needs("node")`. Where it is absent, the
test is skipped with one line that says how to install it. In CI, where all are installed, the test fails.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

# Debian keeps PostgreSQL's and nginx's programs outside the path of most users.
POSTGRESQL_FOLDERS = "/usr/lib/postgresql/*/bin"
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Program:
    """What has to be there, each of `commands` by any of its names, and the Debian packages that have it.

    check: a command that succeeds if what the program itself loads is there too.
    """

    commands: tuple[tuple[str, ...], ...]
    packages: str
    check: tuple[str, ...] = ()


PROGRAMS = {
    "node": Program((("node",),), "nodejs"),
    "npm": Program((("node",), ("npm",)), "nodejs npm"),
    "chromium": Program((("chromium", "google-chrome"), ("chromedriver",)), "chromium chromium-driver"),
    "firefox": Program((("firefox-esr", "firefox"),), "firefox-esr"),
    "webkit": Program((("Xvfb",), ("WebKitWebDriver",)), "xvfb webkit2gtk-driver"),
    "gcc": Program((("gcc",),), "gcc libc6-dev"),
    "arm": Program(
        (("arm-none-eabi-gcc",), ("qemu-system-arm",)),
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
    ),
    "valgrind": Program((("valgrind",),), "valgrind"),
    "postgres": Program((("postgres",), ("psql",)), "postgresql"),
    "nginx": Program((("nginx",),), "nginx"),
    "caddy": Program((("caddy",),), "caddy"),
    "java": Program((("java",),), "openjdk-17-jre-headless"),
    "prometheus": Program((("prometheus",), ("promtool",)), "prometheus"),
    "R": Program(
        (("Rscript",),),
        "r-base-core r-cran-jsonlite r-cran-ncdf4 r-cran-survey",
        check=("Rscript", "-e", "library(jsonlite); library(ncdf4); library(survey)"),
    ),
    "git": Program((("git",),), "git"),
    "curl": Program((("curl",),), "curl"),
    "openssl": Program((("openssl",),), "openssl"),
    "systemd-analyze": Program((("systemd-analyze",),), "systemd"),
    "debootstrap": Program((("debootstrap",),), "debootstrap"),
}


def need(*names):
    """Skip the test unless this machine has these programs; other names are of Python packages."""
    for name in names:
        advice = missing(name)
        if advice and os.environ.get("CI"):
            pytest.fail(f"CI lacks {name}: {advice}", pytrace=False)
        if advice:
            pytest.skip(f"needs {name}: {advice}")


@cache
def missing(name):
    """How to install what is not there; "" if it is."""
    if name not in PROGRAMS:
        return "" if find_spec(name) else "`make test-all` installs it"
    program = PROGRAMS[name]
    is_there = all(any(map(which, names)) for names in program.commands)
    if is_there and program.check:
        is_there = subprocess.run(program.check, capture_output=True, check=False).returncode == 0
    return "" if is_there else f"apt-get install {program.packages}"


def which(command):
    """The path of a program, also where Debian keeps servers and PostgreSQL."""
    folders = sorted(Path("/").glob(POSTGRESQL_FOLDERS[1:]), key=lambda folder: int(folder.parent.name))
    return shutil.which(command, path=os.pathsep.join([*map(str, reversed(folders)), PATH]))


def output_of(*command, **options):
    """What a program prints; it must end well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout
