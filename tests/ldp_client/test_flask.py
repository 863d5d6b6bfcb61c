"""The Flask extension: what `ldp_study` writes in templates."""

import pytest
from flask import Flask, render_template_string

from ldp_client.documents.errors import UsageError
from ldp_client.flask import LdpStudy

SCRIPT = '<script type="module" src="https://c.example/assets/element.js"></script>'


def rendered(app, call):
    with app.test_request_context():
        return render_template_string("{{ " + call + " }}")


def test_template_writes_the_element_and_its_script():
    app = Flask("app")
    LdpStudy(app, collector="https://c.example/")
    expected = SCRIPT + '<ldp-study src="https://c.example/s/habits" lang="fr"></ldp-study>'
    assert rendered(app, 'ldp_study("habits", lang="fr", ticket=None)') == expected


@pytest.mark.parametrize("call", ["ldp_study(text)", 'ldp_study("habits", ticket=text)'])
def test_text_cannot_leave_its_attribute(call):
    app = Flask("app")
    LdpStudy(app, collector="https://c.example")
    app.jinja_env.globals["text"] = '"><script>alert(1)</script>'
    assert rendered(app, call).count("<script") == 1


def test_app_factory_takes_the_collector_of_its_configuration():
    extension, app = LdpStudy(), Flask("app")
    app.config["LDP_COLLECTOR"] = "https://c.example"
    extension.init_app(app)
    assert rendered(app, 'ldp_study("habits")').startswith(SCRIPT)


def test_collector_that_no_device_accepts_raises():
    for collector in ("", "http://c.example"):
        with pytest.raises(UsageError):
            LdpStudy(Flask("app"), collector)
