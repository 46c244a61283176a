"""Sphinx configuration of the site.

DNDS_SITE_VERSION, DNDS_SITE_VERSIONS: set by scripts/docs.sh: the version of the pages, and all that the site has.
"""

import os

project = "DNDS"
author = "the authors of DNDS"
version = release = os.environ["DNDS_SITE_VERSION"]
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Other words for languages of blocks, as GitHub knows them.
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]

here = os.path.dirname(os.path.abspath(__file__))
html_theme = "furo"
html_title = f"DNDS {release}"
html_static_path = [os.path.join(here, "_static")]
html_css_files = ["site.css"]
templates_path = [os.path.join(here, "_templates")]
html_copy_source = False
html_show_copyright = False
html_context = {"site_versions": os.environ.get("DNDS_SITE_VERSIONS", "").split(), "site_version": release}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/site_versions.html",
        "sidebar/scroll-end.html",
    ]
}


def setup(app):
    """The ranking of the search page, which assemble.py lays beside the pages."""
    app.config.html_search_scorer = str(app.srcdir / "scorer.js")
