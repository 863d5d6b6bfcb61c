"""An app's own Flask server with one question on a page: for engineers of web apps.

Run: python examples/web/app.py http://127.0.0.1:8000 affairs. The collector's setting `cors_origins` must
list this app: `LDPKIT_CORS_ORIGINS=http://127.0.0.1:5000 ldpkit serve`. The app serves the page and the
library; it never sees an answer, nor a report. question.html and question.js, with the library in ldpkit/
beside them, are a plain page on any static server.
"""

from __future__ import annotations

import sys
from pathlib import Path

from flask import Flask, Response, send_from_directory

HERE = Path(__file__).parent
# In an app with npm: node_modules/ldpkit.
LIBRARY = HERE.parents[1] / "js"
SHOWN = 'data-collector="http://127.0.0.1:8000" data-study="affairs" data-max-epsilon="1"'


def create_app(collector: str, study: str, max_epsilon: str = "1") -> Flask:
    """The app, whose visitors answer a study of this collector."""
    app = Flask("question")
    page = (HERE / "question.html").read_text("utf-8")
    page = page.replace(
        SHOWN, f'data-collector="{collector}" data-study="{study}" data-max-epsilon="{max_epsilon}"'
    )
    only = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src "

    @app.get("/")
    def show() -> Response:
        headers = {"Content-Security-Policy": only + collector}
        return Response(page, content_type="text/html; charset=utf-8", headers=headers)

    @app.get("/question.js")
    def script() -> Response:
        return send_from_directory(HERE, "question.js")

    @app.get("/ldpkit/<path:name>")
    def library(name: str) -> Response:
        return send_from_directory(LIBRARY, name)

    return app


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("say which collector and study: app.py http://127.0.0.1:8000 affairs")
    create_app(*sys.argv[1:]).run(port=5000)
