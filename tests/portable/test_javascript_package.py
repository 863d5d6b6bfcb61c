"""The JavaScript port as a package: small, typed, without dependencies."""

import json
import re
import subprocess

import pytest

from tests import studies
from tests.portable import npm, run_vectors
from tests.portable.platforms import JAVASCRIPT

# What a page loads, minified, to read a study with one mechanism, to answer it once, and to keep the report;
# what it loads once a report waits to be sent, with retries, and once one changes. A study with public
# fields adds, and so on.
MOST_BYTES = 15_400
MOST_BYTES_OF_SENDING = 3_400
MOST_BYTES_OF_CHANGING = 1_300
MOST_BYTES_OF_TELLING = 900
MOST_BYTES_OF_SECTIONS = 600
MOST_BYTES_OF_ASKING_ONE = 1_000
MOST_BYTES_OF_DAYS = 600
MOST_BYTES_OF_PUBLIC_FIELDS = 2_300
MOST_BYTES_OF_WHO_ASKS = 700
MOST_BYTES_OF_LANGUAGES = 1_000
MOST_BYTES_OF_CHANNEL = 1_500
MOST_BYTES_OF_PASTED = 300
# Beside what sends.
MOST_BYTES_OF_BATCHES = 1_400
MOST_BYTES_OF_TOKENS = 2_520
MOST_BYTES_OF_RELAYED = 4_100
MOST_BYTES_OF_REFUSABLE_NUMBERS = 1_000
MOST_BYTES_OF_LEVELS = 2_000
MOST_BYTES_OF_BLOCKS = 1_200
MOST_BYTES_IN_ALL = 28_000
MECHANISMS = sorted(set(run_vectors.MECHANISMS) - {"summed_gaussian"})
STAGES = {"randomized_response": "response_twice", "sue": "sue_twice"}
# The modules of what a study may name: of a memoized answer its two stages too.
NAMED = [[name] for name in MECHANISMS if name != "memoized"]
NAMED += [["memoized", of, stages] for of, stages in STAGES.items()]
ON_DEMAND = [*MECHANISMS, *STAGES.values(), "public", "asker", "levels"]
ON_DEMAND += [
    "product_blocks",
    "languages",
    "refusal",
    "days",
    "drawing",
    "changing",
    "sending",
    "told",
    "sections",
    "channel",
    "leaving",
    "pasted",
    "tokens",
]
TYPESCRIPT_OPTIONS = ("--noEmit", "--strict", "--target", "es2022", "--module", "nodenext")


@pytest.fixture(scope="module", autouse=True)
def packages():
    npm.install()


def bundle_size(modules):
    command = [npm.ESBUILD, JAVASCRIPT / "index.js", "--bundle", "--minify", "--format=esm"]
    left_out = [f"--external:*/{name}.js" for name in ON_DEMAND if name not in modules]
    return len(subprocess.run([*command, *left_out], check=True, capture_output=True).stdout)


@pytest.mark.parametrize("named", NAMED, ids=",".join)
def test_bundle_of_one_mechanism_is_small(named):
    assert 8_000 < bundle_size(named) <= MOST_BYTES


def test_bundles_of_optional_features_are_small():
    named = ["memoized", "sue", "sue_twice"]
    size = bundle_size(named)
    more = {
        "sending": MOST_BYTES_OF_SENDING,
        "changing": MOST_BYTES_OF_CHANGING,
        "told": MOST_BYTES_OF_TELLING,
        "sections": MOST_BYTES_OF_SECTIONS,
        "drawing": MOST_BYTES_OF_ASKING_ONE,
        "days": MOST_BYTES_OF_DAYS,
        "public": MOST_BYTES_OF_PUBLIC_FIELDS,
        "asker": MOST_BYTES_OF_WHO_ASKS,
        "languages": MOST_BYTES_OF_LANGUAGES,
        "channel": MOST_BYTES_OF_CHANNEL,
        "pasted": MOST_BYTES_OF_PASTED,
    }
    for module, most in more.items():
        added = bundle_size([*named, module]) - size
        assert most // 2 < added <= most, (module, added)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_bundle_of_refusable_numbers_is_small(mechanism):
    assert (
        200
        < bundle_size([mechanism, "refusal"]) - bundle_size([mechanism])
        <= MOST_BYTES_OF_REFUSABLE_NUMBERS
    )


def test_level_features_are_loaded_on_demand():
    without = bundle_size(["sampled_products"])
    assert 1_000 < bundle_size(["sampled_products", "levels"]) - without <= MOST_BYTES_OF_LEVELS


def test_weighted_products_are_loaded_on_demand():
    without = bundle_size(["sampled_products"])
    assert 500 < bundle_size(["sampled_products", "product_blocks"]) - without <= MOST_BYTES_OF_BLOCKS


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
        ("collector/assets/library.js", "ldpkit.js"),
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
    const {{ parseStudy, perturbAnswers }} = await import("{JAVASCRIPT / "index.js"}");
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
