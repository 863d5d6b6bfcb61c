"""Everything that is published, into dist/: wheels, sources, the npm tarball, bills of materials, hashes.

`make release` runs it. It builds what is committed and nothing else, so that whoever builds that commit again
gets the same bytes. It publishes nothing: .github/workflows/release.yml does, when a tag is pushed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lean import make_lean

ROOT = Path(__file__).parent
DEVICE = "ldp_client"
JAVASCRIPT = "ldp_client/js"
PUBLINT = ROOT / "tests/portable/node_modules/.bin/publint"
# Each file that says a version, and where in it.
VERSIONS = {
    "ldp_client/pyproject.toml": r'^version = "(.+)"$',
    "pyproject.toml": r'^version = "(.+)"$',
    "ldp_client/js/package.json": r'^  "version": "(.+)",$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## (\S+)",
}
# What stands beside sources and is none.
BESIDE = (".*", "__pycache__", "*.egg-info", "build", "dist", "demo", "site", "node_modules")
CHANGES, HASHES = "CHANGES.md", "SHA256SUMS"
# What people install, and what it brings: each gets a bill of materials.
MATERIALS = {"ldp-client": "ldp_client", "ldpkit[all]": "."}


def main(out: Path = ROOT / "dist") -> int:
    """Build and check all of it; 1 where something is wrong, which is said."""
    wrong = unlike_versions(ROOT)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    out.mkdir(exist_ok=True)
    folders = [path.name for path in out.iterdir() if path.is_dir()]
    if folders:
        print(f"{out} has folders that are no release: move away {', '.join(folders)}", file=sys.stderr)
        return 1
    for old in out.iterdir():
        old.unlink()
    with TemporaryDirectory() as name:
        stage = Path(name)
        build(stage, out, committed(stage))
    (out / CHANGES).write_text(changes(ROOT), encoding="utf-8")
    run_publint(made(out, "*.tgz"))
    run("twine", "check", "--strict", *made(out, "*.whl"), *made(out, "*.tar.gz"))
    for what, project in MATERIALS.items():
        write_materials(what, project, out)
    hashes = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(out.iterdir())
    ]
    (out / HASHES).write_text("\n".join(hashes) + "\n")
    print("\n".join(hashes))
    return 0


def unlike_versions(root: Path) -> list[str]:
    """What is wrong with the versions that files say; nothing where all say the same."""
    said = {}
    for name, pattern in VERSIONS.items():
        found = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        said[name] = found[1] if found else "none"
    needed = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    wrong = [f"{name} says version {version}" for name, version in said.items()]
    if len(set(said.values())) > 1:
        return ["versions differ:", *wrong]
    wanted = f"ldp-client=={said['pyproject.toml']}"
    return [] if wanted in needed else [f"pyproject.toml must need {wanted}, not {', '.join(needed)}"]


def committed(stage: Path) -> int:
    """Write the files of the commit at hand to a folder; returns its time, in seconds since 1970.

    Of sources without their repository all files are as good as committed, and as old as the changelog.
    """
    asked = ["git", "rev-parse", "--show-toplevel"]
    top = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True)
    if top.returncode == 0 and Path(top.stdout.strip()) == ROOT.resolve():
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(stage, filter="tar")
        when = ["git", "log", "-1", "--format=%ct"]
        seconds = int(subprocess.run(when, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        tell_uncommitted(ROOT)
    else:
        shutil.copytree(
            ROOT, stage, symlinks=True, ignore=shutil.ignore_patterns(*BESIDE), dirs_exist_ok=True
        )
        seconds = int((ROOT / "CHANGELOG.md").stat().st_mtime)
    # A link within a folder that is built alone would point out of it.
    for link in [path for path in stage.rglob("*") if path.is_symlink()]:
        content = link.read_bytes()
        link.unlink()
        link.write_bytes(content)
    return seconds


def tell_uncommitted(root: Path) -> None:
    """Say what is changed and not committed, as a release does not have it."""
    asked = ["git", "status", "--porcelain"]
    changed = subprocess.run(asked, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    if changed:
        names = ", ".join(line[3:] for line in changed[:5])
        print(f"not committed, and left out of the release: {names}", file=sys.stderr)


def build(stage: Path, out: Path, seconds: int) -> None:
    """Wheels and sources of both projects, and the npm tarball, as if made at that time."""
    os.environ["SOURCE_DATE_EPOCH"] = str(seconds)
    # The same rights whoever builds.
    os.umask(0o022)
    for project in (DEVICE, "."):
        run_build("--sdist", stage / project, out)
    build_wheels(stage, out)
    for source in made(out, "*.tar.gz"):
        fix_times(Path(source), seconds)
    state_repository(stage / JAVASCRIPT / "package.json")
    pack = ["npm", "pack", "--silent", "--pack-destination", str(out.resolve())]
    subprocess.run(pack, cwd=stage / JAVASCRIPT, check=True, stdout=subprocess.DEVNULL)


def state_repository(package: Path) -> None:
    """Say in the npm package which repository builds it, where that has an address: provenance needs it."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if not server or not name:
        return
    stated = json.loads(package.read_text(encoding="utf-8"))
    stated["repository"] = {"type": "git", "url": f"git+{server}/{name}.git", "directory": JAVASCRIPT}
    package.write_text(json.dumps(stated, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def build_wheels(stage: Path, out: Path) -> None:
    """Both wheels, from sources that are changed for it: the device's becomes lean."""
    run_build("--wheel", stage, out)
    make_lean(stage / DEVICE)
    run_build("--wheel", stage / DEVICE, out)


def run_build(kind: str, project: Path, out: Path) -> None:
    """With the tools of this environment, whose versions are constrained, and no network."""
    run("build", "--no-isolation", kind, "--outdir", str(out), str(project))


def fix_times(source: Path, seconds: int) -> None:
    """Write a source archive anew without what differs from build to build: times, owners, the order."""
    with tarfile.open(source) as files:
        members = [(one, files.extractfile(one)) for one in files.getmembers()]
        read = [(one, None if data is None else data.read()) for one, data in members]
    with (
        source.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as again,
    ):
        for one, data in sorted(read, key=lambda pair: pair[0].name):
            plain = tarfile.TarInfo(one.name)
            plain.type, plain.size, plain.mtime = one.type, len(data or b""), seconds
            plain.mode = 0o755 if one.isdir() else 0o644
            again.addfile(plain, io.BytesIO(data or b""))


def changes(root: Path) -> str:
    """What is new in this version: its part of the changelog."""
    parts = re.split(r"^(?=## )", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return parts[1]


def write_materials(what: str, project: str, out: Path) -> None:
    """Write what an installation brings, with the versions that were tested, as CycloneDX."""
    wanted = Requirement(what)
    names = "\n".join(sorted(f"{name}=={distribution(name).version}" for name in brought(wanted)))
    target = out / f"{canonicalize_name(wanted.name)}.cdx.json"
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "-", "--output-reproducible"]
    command += ["--pyproject", str(ROOT / project / "pyproject.toml"), "-o", str(target)]
    subprocess.run(command, input=names, text=True, check=True, capture_output=True)


def brought(wanted: Requirement, seen: set[tuple[str, str]] | None = None) -> set[str]:
    """The names of all that installing this brings beside itself, as it is installed here."""
    seen = set() if seen is None else seen
    found: set[str] = set()
    for extra in sorted(wanted.extras) or [""]:
        if (wanted.name, extra) in seen:
            continue
        seen.add((wanted.name, extra))
        for line in distribution(wanted.name).requires or []:
            needed = Requirement(line)
            if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
                continue
            try:
                distribution(needed.name)
            except PackageNotFoundError:
                print(f"not installed, and left out of the bill of materials: {needed.name}", file=sys.stderr)
                continue
            ours = canonicalize_name(needed.name) == canonicalize_name(wanted.name)
            found |= (set() if ours else {canonicalize_name(needed.name)}) | brought(needed, seen)
    return found


def made(out: Path, pattern: str) -> list[str]:
    """Paths of what was built, sorted."""
    return sorted(str(path) for path in out.glob(pattern))


def run_publint(tarballs: list[str]) -> None:
    """Check what browsers, node and bundlers make of the npm packages."""
    if not PUBLINT.is_file():
        sys.exit("publint is not installed: run npm ci in tests/portable, as make release does")
    for tarball in tarballs:
        _run_quietly("publint", [str(PUBLINT), "--strict", tarball])


def run(module: str, *arguments: str) -> None:
    """Run a tool of this environment, quietly unless it fails."""
    _run_quietly(module, [sys.executable, "-m", module, *arguments])


def _run_quietly(name: str, command: list[str]) -> None:
    """Raises SystemExit with the end of what a command said, where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


if __name__ == "__main__":
    sys.exit(main())
