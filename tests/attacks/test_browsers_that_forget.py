"""A part of the browser's module fails to load, which must cost nothing and be retried."""

from tests import studies
from tests.portable.chromium import attempt, run, set_offline
from tests.portable.conftest import browser, page, site

__all__ = ["browser", "page", "site"]

SAME = "Haben Sie je betrogen?"
LANGUAGES = {"languages": ["en", "de"]}
BOTH = {**studies.YES_NO, "text": {"en": "Have you ever cheated?", "de": SAME}}
CLEAR = {"id": "asked", "choices": ["no", "yes"]}


def test_module_part_that_fails_to_load_costs_nothing_and_is_retried(page):
    script = """
    const [document] = args;
    const study = await parseStudy(JSON.stringify(document));
    return (await (await openDevice({ maxEpsilon: "4" })).answer(study, { ever: true })).study;
    """
    document = studies.document(BOTH, public=[{**CLEAR, "source": "invitation"}], **LANGUAGES)
    run(page, "return null;")
    set_offline(page, True)
    try:
        assert attempt(page, script, document) == {"error": "module", "field": ""}
    finally:
        set_offline(page, False)
    assert run(page, script, document) == "survey"
