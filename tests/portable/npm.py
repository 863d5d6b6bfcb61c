"""The library in JavaScript, and the npm packages of these tests, installed once beside them."""

import fcntl
import subprocess
from pathlib import Path

from tests.kit.programs import need, output_of, which

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parents[1]
JAVASCRIPT = REPOSITORY / "js"
PACKAGES = FOLDER / "node_modules"
ESBUILD = PACKAGES / "esbuild" / "bin" / "esbuild"
TYPESCRIPT = PACKAGES / "typescript" / "bin" / "tsc"


def install():
    """Install what package-lock.json says, unless it is there; safe when several processes try."""
    need("npm")
    with (FOLDER / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = PACKAGES / ".package-lock.json"
        if installed.exists() and installed.stat().st_mtime >= Path(lock.name).stat().st_mtime:
            return
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=FOLDER, check=True, capture_output=True)


def node(*arguments, cwd=FOLDER):
    """What a node program prints; it must end well."""
    need("node")
    return output_of("node", *map(str, arguments), cwd=cwd)


def newer_node():
    """A node that has node:sqlite: the system's, or the one beside these tests."""
    install()
    found = [which("node"), *map(str, PACKAGES.glob("node-*/bin/node"))]
    for program in filter(None, found):
        tried = subprocess.run([program, "-e", "require('node:sqlite')"], capture_output=True, check=False)
        if tried.returncode == 0:
            return program
    raise AssertionError("these tests need node 22.13 or later, or `npm ci` without --omit=optional")
