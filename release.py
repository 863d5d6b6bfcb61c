"""Build all release files in dist/: wheels, sources, the npm tarball, bills of materials, hashes.

`make release` runs this script. It builds committed files only, so that another build of the same commit
gives the same bytes. It does not publish: .github/workflows/release.yml does, when a tag is pushed.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent
DEVICE = "ldp_client"
JAVASCRIPT = "js"
PYTHON_M = (sys.executable, "-m")
PUBLINT = ROOT / "tests/portable/node_modules/.bin/publint"
# Each file that states the version, and the pattern that finds it.
VERSIONS = {
    "ldp_client/pyproject.toml": r'^version = "(.+)"$',
    "pyproject.toml": r'^version = "(.+)"$',
    "js/package.json": r'^  "version": "(.+)",$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## (\S+)",
}
CHANGES, HASHES = "CHANGES.md", "SHA256SUMS"
# Requirements that users install, and their projects. Each gets a bill of materials.
MATERIALS = {"ldp-client": "ldp_client", "ldpkit[all]": "."}


def main(out: Path = ROOT / "dist") -> int:
    """Build and check all release files. Return 1 and print the problems if something is wrong."""
    wrong = unlike_versions(ROOT)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    out.mkdir(exist_ok=True)
    if folders := [path.name for path in out.iterdir() if path.is_dir()]:
        print(f"{out} has folders, which no release has: move away {', '.join(folders)}", file=sys.stderr)
        return 1
    for old in out.iterdir():
        old.unlink()
    with TemporaryDirectory() as name:
        stage = Path(name)
        build(stage, out, committed(stage))
    (out / CHANGES).write_text(changes(ROOT), encoding="utf-8")
    run_publint(made(out, "*.tgz"))
    run(*PYTHON_M, "twine", "check", "--strict", *made(out, "*.whl"), *made(out, "*.tar.gz"))
    for what, project in MATERIALS.items():
        write_materials(what, project, out)
    hashes = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(out.iterdir())
    ]
    (out / HASHES).write_text("\n".join(hashes) + "\n")
    print("\n".join(hashes))
    return 0


def unlike_versions(root: Path) -> list[str]:
    """Return the problems with the versions that files state; empty if all versions are equal."""
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
    """Write the files of the current commit to a folder. Return its time, in seconds since 1970."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout

    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as files:
        files.extractall(stage, filter="tar")
    if changed := git("status", "--porcelain").decode().splitlines():
        names = ", ".join(line[3:] for line in changed[:5])
        print(f"not committed, and left out of the release: {names}", file=sys.stderr)
    # Folders are built separately, and a link could point out of its folder.
    for link in [path for path in stage.rglob("*") if path.is_symlink()]:
        content = link.read_bytes()
        link.unlink()
        link.write_bytes(content)
    return int(git("log", "-1", "--format=%ct"))


def build(stage: Path, out: Path, seconds: int) -> None:
    """Build wheels and sources of both projects, and the npm tarball, with the given time in all files."""
    os.environ["SOURCE_DATE_EPOCH"] = str(seconds)
    # File permissions must not depend on the user who builds.
    os.umask(0o022)
    for project in (DEVICE, "."):
        run_build("--sdist", stage / project, out)
    build_wheels(stage, out)
    for source in made(out, "*.tar.gz"):
        fix_times(Path(source), seconds)
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if server and name:
        # npm's provenance needs the repository in the package.
        package = stage / JAVASCRIPT / "package.json"
        stated = json.loads(package.read_text(encoding="utf-8"))
        stated["repository"] = {"type": "git", "url": f"git+{server}/{name}.git", "directory": JAVASCRIPT}
        package.write_text(json.dumps(stated, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    pack = ["npm", "pack", "--silent", "--pack-destination", str(out.resolve())]
    subprocess.run(pack, cwd=stage / JAVASCRIPT, check=True, stdout=subprocess.DEVNULL)


def build_wheels(stage: Path, out: Path) -> None:
    """Build both wheels."""
    run_build("--wheel", stage, out)
    run_build("--wheel", stage / DEVICE, out)


def run_build(kind: str, project: Path, out: Path) -> None:
    """Run `build` without network, with the tools of this environment, whose versions are constrained."""
    run(*PYTHON_M, "build", "--no-isolation", kind, "--outdir", str(out), str(project))


def fix_times(source: Path, seconds: int) -> None:
    """Rewrite a source archive without data that differs between builds: times, owners, order."""
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
    """Return this version's part of the changelog."""
    parts = re.split(r"^(?=## )", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return parts[1]


def write_materials(what: str, project: str, out: Path) -> None:
    """Write the packages that an installation brings, with the tested versions, as CycloneDX."""
    wanted = Requirement(what)
    names = "\n".join(sorted(f"{name}=={distribution(name).version}" for name in brought(wanted)))
    target = out / f"{canonicalize_name(wanted.name)}.cdx.json"
    command = [*PYTHON_M, "cyclonedx_py", "requirements", "-", "--output-reproducible"]
    command += ["--pyproject", str(ROOT / project / "pyproject.toml"), "-o", str(target)]
    subprocess.run(command, input=names, text=True, check=True, capture_output=True)


def brought(wanted: Requirement, seen: set[tuple[str, str]] | None = None) -> set[str]:
    """Return the names of all installed packages that a requirement brings, except its own."""
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
    """Return the sorted paths of built files that match a pattern."""
    return sorted(str(path) for path in out.glob(pattern))


def run_publint(tarballs: list[str]) -> None:
    """Check with publint that browsers, node and bundlers can use the npm packages."""
    if not PUBLINT.is_file():
        sys.exit("publint is not installed: run npm ci in tests/portable, as make release does")
    for tarball in tarballs:
        run(str(PUBLINT), "--strict", tarball)


def run(*command: str) -> None:
    """Run a command. If it fails, raise SystemExit with the end of its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


if __name__ == "__main__":
    sys.exit(main())
