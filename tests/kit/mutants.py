"""Plants the committed faults, one at a time, and runs the tests that must fail.

    python -m tests.kit.mutants [--only collector device] [--words ledger]

Each file of tests/mutants lists faults of one part of the code: the broken behaviour in words, the changed
lines, and the tests that find it. Who rewrites the code states the fault again in the new lines, or names in
the commit the decision that ends the behaviour. The faults are planted in a copy of the tracked files.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
LISTS = ROOT / "tests" / "mutants"
SECONDS = 300
# Not tracked by git, and too large to copy.
LINKED = (".venv", "tests/portable/node_modules")


@dataclass(frozen=True)
class Mutant:
    """One fault of the code, which the named tests must find."""

    behaviour: str
    file: str
    before: str
    after: str
    tests: list[str]


def mutants_in(path):
    """Read the faults of one list."""
    with path.open("rb") as file:
        return [Mutant(**entry) for entry in tomllib.load(file)["mutant"]]


def copied(folder):
    """Copy the tracked files into a folder, with links to installed packages."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for name in LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return folder


def survives(mutant, folder):
    """Plant a fault in the copy, and return True if its tests pass nevertheless."""
    file = folder / mutant.file
    text = file.read_text("utf-8")
    file.write_text(text.replace(mutant.before, mutant.after), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        run = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
        # pytest ends with 1 if a test failed, 2 if a file could not be imported, and more if it ran none.
        if run.returncode > 2:
            raise SystemExit(f"{mutant.behaviour}: {run.stdout.decode()[-2000:]}")
        return run.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(text, "utf-8")


def main(argv=None):
    """Plant the faults, print each that survives, and return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", help="lists of tests/mutants, without .toml")
    parser.add_argument("--words", default="", help="plant only faults whose behaviour has these words")
    arguments = parser.parse_args(argv)
    lists = sorted(LISTS.glob("*.toml"))
    chosen = [path for path in lists if arguments.only is None or path.stem in arguments.only]
    listed = [mutant for path in chosen for mutant in mutants_in(path)]
    mutants = [mutant for mutant in listed if arguments.words in mutant.behaviour]
    with TemporaryDirectory() as name:
        folder, alive = copied(Path(name)), 0
        for mutant in mutants:
            lives = survives(mutant, folder)
            alive += lives
            print("SURVIVES" if lives else "killed  ", f"{mutant.file}: {mutant.behaviour}", flush=True)
    print(f"{len(mutants)} faults planted, {alive} not found")
    return int(alive > 0)


if __name__ == "__main__":
    sys.exit(main())
