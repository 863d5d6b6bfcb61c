"""A Flask app with one study on a page: for developers of web apps.

Run: python examples/web/app.py http://127.0.0.1:8000 affairs. The collector's setting `frame_ancestors` must
list this app: `LDPKIT_FRAME_ANCESTORS=http://127.0.0.1:5000 ldpkit serve`. The app never sees an answer or a
report.
"""

import sys

from flask import Flask, render_template_string

from ldp_client.flask import LdpStudy

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>One question</title><link rel="icon" href="data:,"></head>
<body><main><h1>One question</h1>{{ ldp_study(study, title="A study") }}</main></body>
</html>"""


def create_app(collector: str, study: str) -> Flask:
    """Return the app, whose visitors answer a study of this collector."""
    app = Flask("question")
    LdpStudy(app, collector)
    policy = f"default-src 'none'; img-src data:; script-src {collector}; frame-src {collector}"

    @app.get("/")
    def show() -> tuple[str, dict[str, str]]:
        return render_template_string(PAGE, study=study), {"Content-Security-Policy": policy}

    return app


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("name a collector and a study: app.py http://127.0.0.1:8000 affairs")
    create_app(*sys.argv[1:]).run(port=5000)
