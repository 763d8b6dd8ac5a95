"""Sphinx: `make docs`."""

project = "Regard"
author = "the founders of Regard"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme = "furo"
html_title = "Regard"
exclude_patterns = ["_build"]
nb_execution_mode = "cache"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
# A widget is shown as the page that it carries, which needs neither a kernel nor scripts from elsewhere.
nb_mime_priority_overrides = [("html", "text/html", 0)]
myst_enable_extensions = ["colon_fence", "dollarmath"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
