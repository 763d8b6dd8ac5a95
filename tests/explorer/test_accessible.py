"""axe finds nothing in any view, light and dark, wide and narrow; it is fetched when the tests run and not kept."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from .conftest import FakeModel, picture, translation


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, from the package registry that npm is set to."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm here to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        [npm, "pack", "axe-core@4", "--silent", "--pack-destination", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    packed = list(folder.glob("*.tgz"))
    if done.returncode or not packed:
        pytest.skip(f"npm cannot fetch axe-core here: {done.stderr.strip()[-200:]}")
    with tarfile.open(packed[0]) as archive:
        archive.extract("package/axe.min.js", folder, filter="data")
    return Path(folder, "package", "axe.min.js").read_text(encoding="utf-8")


CHECK = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["words", "matrix", "picture", "heads", "layers", "rollout"])
def test_every_view(open_site, open_page, axe, view, scheme):
    recording = picture() if view == "picture" else translation()
    models = [FakeModel()] if view == "words" else []
    width = 1280 if scheme == "light" else 420
    page = open_page(
        open_site({"one": recording, "two": recording}, models) + f"#view={view}&query=1&compare=1",
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        bypass_csp=True,
    )
    page.locator(".pane .view").first.wait_for()
    page.locator("details").first.locator("summary").click()
    page.wait_for_timeout(300)
    page.evaluate(axe)
    found = page.evaluate(CHECK)
    assert not found, "\n".join(found)
