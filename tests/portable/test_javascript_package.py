"""The JavaScript port as a package: small, typed, without dependencies."""

import json
import re
import subprocess

import pytest

from tests import studies
from tests.portable import npm, run_vectors
from tests.portable.platforms import JAVASCRIPT

# What a page loads, minified, to read a study with one mechanism, to answer it once, and to keep the report.
MOST_BYTES = 15_400
MOST_BYTES_IN_ALL = 25_600
MOST_BYTES_OF_RELAYED = 4_500
MECHANISMS = sorted(set(run_vectors.MECHANISMS) - {"summed_gaussian"})
# What it loads later, and what only some studies need, beside that.
MOST_BYTES_OF = {
    "changing": 1_400,
    "channel": 1_200,
    "fetching": 900,
    "languages": 950,
    "public": 1_900,
    "sending": 3_500,
    "study_parts": 2_000,
    "told": 800,
}
ON_DEMAND = [*MECHANISMS, *MOST_BYTES_OF, "levels", "leaving", "tokens", "oblivious"]
MOST_BYTES_OF_LEVELS = 1_600
# Beside what sends.
MOST_BYTES_OF_BATCHES = 1_400
MOST_BYTES_OF_TOKENS = 2_550
TYPESCRIPT_OPTIONS = ("--noEmit", "--strict", "--target", "es2022", "--module", "nodenext")


@pytest.fixture(scope="module", autouse=True)
def packages():
    npm.install()


def bundle_size(modules):
    command = [npm.ESBUILD, JAVASCRIPT / "index.js", "--bundle", "--minify", "--format=esm"]
    left_out = [f"--external:*/{name}.js" for name in ON_DEMAND if name not in modules]
    return len(subprocess.run([*command, *left_out], check=True, capture_output=True).stdout)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bundle_of_one_mechanism_is_small(mechanism):
    assert 8_000 < bundle_size([mechanism]) <= MOST_BYTES


@pytest.mark.parametrize("module", MOST_BYTES_OF)
def test_bundles_of_optional_features_are_small(module):
    added = bundle_size(["memoized", module]) - bundle_size(["memoized"])
    assert MOST_BYTES_OF[module] // 2 < added <= MOST_BYTES_OF[module]


def test_level_features_are_loaded_on_demand():
    without = bundle_size(["sampled_products"])
    assert 1_000 < bundle_size(["sampled_products", "levels"]) - without <= MOST_BYTES_OF_LEVELS


def test_batches_and_tokens_are_loaded_on_demand():
    sending = bundle_size(["laplace", "sending"])
    batches = bundle_size(["laplace", "sending", "leaving"])
    tokens = bundle_size(["laplace", "sending", "leaving", "tokens"])
    assert MOST_BYTES_OF_BATCHES // 2 < batches - sending <= MOST_BYTES_OF_BATCHES
    assert MOST_BYTES_OF_TOKENS // 2 < tokens - batches <= MOST_BYTES_OF_TOKENS


def test_bundle_of_a_relay_is_small_and_no_part_of_the_page():
    command = [npm.ESBUILD, JAVASCRIPT / "oblivious.js", "--bundle", "--minify", "--format=esm"]
    size = len(subprocess.run(command, check=True, capture_output=True).stdout)
    assert MOST_BYTES_OF_RELAYED // 2 < size <= MOST_BYTES_OF_RELAYED
    assert b"message/ohttp-req" not in (JAVASCRIPT.parent / "collector" / "assets" / "page.js").read_bytes()


def test_complete_bundle_is_small():
    assert bundle_size([]) < bundle_size(MECHANISMS) <= MOST_BYTES_IN_ALL


@pytest.mark.parametrize(
    ("source", "served"),
    [
        ("collector/assets/participant.js", "page.js"),
        ("collector/assets/sender.js", "worker.js"),
        ("js/index.js", "ldpkit.js"),
        ("js/element.js", "element.js"),
    ],
)
def test_collector_serves_bundles_of_the_modules_as_they_are(source, served):
    """`make page` writes the bundles."""
    command = ["npm", "run", "--silent", "bundle", "--", f"../../{source}"]
    bundled = subprocess.run(command, cwd=npm.FOLDER, check=True, capture_output=True)
    assert bundled.stdout == (npm.FOLDER.parents[1] / "collector" / "assets" / served).read_bytes()


REFUSED = """
const {{ parseStudy }} = await import("{port}");
const study = JSON.parse({text});
const refused = ({{ code, field }}) => code + " " + field;
console.log(await parseStudy(JSON.stringify(study)).then(() => "", refused));
"""


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"protocol": {"name": "secure_sum"}}, "protocol"),
        ({"respondent": "holder"}, "respondent"),
    ],
)
def test_unsupported_study_is_rejected_before_any_noise(change, field):
    document = studies.document(studies.YES_NO, **change)
    script = REFUSED.format(port=JAVASCRIPT / "index.js", text=json.dumps(json.dumps(document)))
    assert npm.node("--input-type=module", "-e", script).strip() == f"study {field}"


@pytest.mark.parametrize("asked", [studies.NUMBER, studies.YES_NO])
def test_devices_need_no_model(asked):
    document = studies.document({key: value for key, value in asked.items() if key != "model"})
    script = REFUSED.format(port=JAVASCRIPT / "index.js", text=json.dumps(json.dumps(document)))
    assert npm.node("--input-type=module", "-e", script).strip() == ""


def test_permanent_errors_are_not_reported_as_failed_loads():
    """A study that is not a text, and a page without https, where browsers have no digests."""
    script = f"""
    const {{ parseStudy }} = await import("{JAVASCRIPT / "index.js"}");
    const codes = [await parseStudy(undefined).catch(({{ code }}) => code)];
    Object.defineProperty(globalThis, "crypto", {{ value: {{}} }});
    codes.push(await parseStudy("{{}}").catch(({{ code, problem }}) => `${{code}}: ${{problem}}`));
    console.log(codes.join());
    """
    assert npm.node("--input-type=module", "-e", script).strip() == "study,input: needs https"


def test_non_number_is_rejected_as_a_public_number():
    """JavaScript converts a list of one number to that number. Python rejects it too."""
    age = {"id": "age", "bounds": ["18", "99"], "step": "1"}
    text = json.dumps(json.dumps(studies.document(studies.YES_NO, public=[age])))
    script = f"""
    const port = "{(JAVASCRIPT / "index.js").as_uri()}";
    const {{ parseStudy }} = await import(port);
    const perturbAnswers = await (await import("{npm.PERTURBING.as_uri()}")).perturbingBy(port);
    const study = await parseStudy({text});
    const made = (age) => perturbAnswers(study, {{ ever: "yes", age }});
    const said = [42, "42", [42], ["42"], [[42]], {{}}, null, true].map((age) =>
      made(age).then(({{ body }}) => JSON.parse(body).public.age, ({{ code }}) => code));
    console.log((await Promise.all(said)).join());
    """
    assert npm.node("--input-type=module", "-e", script).strip() == ",".join(["42"] * 2 + ["answer"] * 6)


def test_typed_array_view_is_read_without_its_buffer():
    """A view of the whole buffer would draw noise from other bytes."""
    part = "viewOf(Uint8Array.of(9, 9, 1, 2, 3, 4).subarray(2)).getUint32(0)"
    script = f"const {{ viewOf }} = await import('{JAVASCRIPT / 'randomness.js'}'); console.log({part})"
    assert int(npm.node("--input-type=module", "-e", script)) == 0x01020304


@pytest.mark.slow
def test_types_accept_the_documented_usage():
    npm.node(npm.TYPESCRIPT, *TYPESCRIPT_OPTIONS, "usage.ts")


def test_types_match_the_exports():
    typed = re.findall(r"export (?:class|function) (\w+)", (JAVASCRIPT / "index.d.ts").read_text())
    script = f"console.log(Object.keys(await import('{JAVASCRIPT / 'index.js'}')).join())"
    exported = npm.node("--input-type=module", "-e", script)
    assert sorted(typed) == sorted(exported.strip().split(","))


def test_package_has_no_external_imports():
    package = json.loads((JAVASCRIPT / "package.json").read_text())
    assert "dependencies" not in package
    imported = {
        (file.name, name)
        for file in JAVASCRIPT.rglob("*.js")
        for name in re.findall(r'(?:from |import\()"([^"]+)"', file.read_text())
    }
    assert len(imported) > 20
    others = {file for file, name in imported if not name.startswith(("./", "../"))}
    # Which no browser loads, and which asks for parts of node alone.
    assert others == {"node.js"}
    assert all(name.startswith(("./", "../", "node:")) for _, name in imported)
