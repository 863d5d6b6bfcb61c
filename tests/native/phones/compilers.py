"""Compilers in a cache folder: Kotlin and zig from PyPI, Swift in a Debian root, which only root can make."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.deploy.roots import Inside, call, debian, install, refuse_unready, run

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldpkit-native"
# The wheel holds the compiler; its own version is another.
KOTLIN_WHEEL, KOTLIN_VERSION = "kotlin-jupyter-kernel==0.19.0.944", "kotlinc-jvm 2.4.0"
ZIG_WHEEL, ZIG_VERSION = "ziglang==0.17.1", "0.17.1"
SWIFT_SUITE, SWIFT_VERSION = "trixie", "Swift version 6.0.3"
SWIFT_PACKAGES = ("swiftlang", "gcc", "libc6-dev")


def kotlin():
    """The command of the Kotlin compiler, which needs Java."""
    jars = wheel(KOTLIN_WHEEL) / "run_kotlin_kernel" / "jars"
    compiler = ["java", "-cp", f"{jars}/*", "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"]
    shown = subprocess.run([*compiler, "-version"], capture_output=True, text=True, check=True).stderr
    require(KOTLIN_VERSION, shown)
    return [*compiler, "-no-stdlib", "-no-reflect", "-Werror", "-cp", str(kotlin_library())]


def kotlin_library():
    """Kotlin's standard library, which programs need when they run."""
    (library,) = wheel(KOTLIN_WHEEL).glob("run_kotlin_kernel/jars/kotlin-stdlib-*.jar")
    return library


def zig():
    program = str(wheel(ZIG_WHEEL) / "ziglang" / "zig")
    require(ZIG_VERSION, run([program, "version"]))
    return [program, "cc"]


def swift_root():
    """A Debian root of 3.2 GB with Swift."""
    folder = CACHE / f"swift-{SWIFT_SUITE}"
    if not folder.exists():
        refuse_unready()
        part = fresh(folder.with_suffix(".part"))
        install(debian(part, SWIFT_SUITE), *SWIFT_PACKAGES)
        part.rename(folder)
    require(SWIFT_VERSION, call(folder, ["swiftc", "--version"], Inside()))
    return folder


def wheel(requirement):
    folder = CACHE / requirement
    if not folder.exists():
        part = fresh(folder.with_suffix(".part"))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        run([*pip, "--target", str(part), requirement])
        part.rename(folder)
    return folder


def fresh(folder):
    """A path of which an interrupted run left nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def require(version, shown):
    """Raise SystemExit unless a compiler has the version that was tested."""
    if version not in shown:
        raise SystemExit(f"the compiler is not {version}: delete {CACHE}\n{shown}")


if __name__ == "__main__":
    print(shlex.join(kotlin()))
    print(shlex.join(zig()))
    print(swift_root())
