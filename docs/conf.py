"""Sphinx: `make docs`."""

project = "Regard"
author = "the founders of Regard"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme = "furo"
html_title = "Regard"
exclude_patterns = ["_build"]
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
