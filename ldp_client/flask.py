"""`{{ ldp_study("habits") }}` in a Flask app's templates: a collector's page of a study, in a frame.

Only this module of ldp_client imports Flask. The app sees no answer and no report.
"""

from functools import partial
from urllib.parse import quote

from flask import Flask
from markupsafe import Markup

from ldp_client.device.arguments import checked_url


class LdpStudy:
    """A Flask extension that gives an app's templates the function `ldp_study`.

    `ldp_study(study, **attributes)` returns the element `<ldp-study>` and the script tag that defines it. The
    attributes are HTML's own: `lang`, `title`, `class`, and `ticket`, the code of an invited person.

    Example:
        ```python
        LdpStudy(app, collector="https://collect.example.org")
        ```
    """

    def __init__(self, app: Flask | None = None, collector: str = "") -> None:
        """Add the function to an app, or let `init_app` do so later.

        Args:
            app: The app; None in a module that an app factory imports.
            collector: The collector's URL. Without it, `LDP_COLLECTOR` of the app's configuration counts.

        Raises:
            InputError: The collector is not a URL that a device accepts.
        """
        self._collector = collector
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Add the function to an app. Raises InputError as the constructor does."""
        collector, *_ = checked_url(self._collector or app.config.get("LDP_COLLECTOR", ""))
        app.jinja_env.globals["ldp_study"] = partial(_element, collector)


def _element(collector: str, study: str, **attributes: str | None) -> Markup:
    stated = {name: value for name, value in attributes.items() if value is not None}
    values = {"src": f"{collector}/s/{quote(study, safe='')}", **stated}
    written = Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in values.items())
    script = Markup('<script type="module" src="{}/assets/element.js"></script>').format(collector)
    return script + Markup("<ldp-study{}></ldp-study>").format(written)
