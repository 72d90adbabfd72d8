"""The site of the documentation: it builds without a warning, and needs no other site."""

import importlib
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.site import hooks, library
from fanin import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KINDS = {"tutorial", "how-to", "reference", "explanation"}
LIBRARY = "\n".join(library.CONTENTS.values())
EXPORTING = ("fanin", "fanin.types", "fanin.testing", "fanin.spark", "fanin_cdk")
ERRORS = {
    one.__name__
    for one in vars(errors).values()
    if isinstance(one, type) and issubclass(one, errors.FaninError)
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a broken link, anchor or reference is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = ["build", "--strict", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def changed(markdown: str, source: str) -> str:
    """What the site makes of a page's text."""
    config = MkDocsConfig()
    config.load_dict({"site_name": "test", "docs_dir": str(DOCS), "site_dir": str(ROOT / ".fanin" / "site")})
    page = Page(None, File(source, str(DOCS), "", use_directory_urls=False), config)
    return hooks.on_page_markdown(markdown, page=page, config=config, files=Files([]))


def test_every_page_of_the_folder_is_on_the_site(site):
    # Given the pages of the repository
    pages = [page.relative_to(DOCS) for page in DOCS.rglob("*.md")]
    # When the site is built
    built = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    # Then each is there, and so are those of the top folder
    assert set(pages) <= built
    assert {Path(page) for page in hooks.PROJECT.values()} <= built


def test_a_reader_loads_nothing_from_another_site(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']?([^\"' >]+)", page.read_text())
        loaded += re.findall(
            r"<link\b[^>]*\brel=[\"']?stylesheet[^>]*\bhref=[\"']?([^\"' >]+)", page.read_text()
        )
        assert loaded
        for address in loaded:
            assert not re.match(r"(?:https?:)?//", address), f"{page.name} loads {address}"
            if not page.name.startswith("404"):
                assert (page.parent / address).is_file(), f"{page.name} loads {address}"


def test_a_page_with_a_diagram_has_what_draws_it(site):
    drawn = {page.name for page in site.rglob("*.html") if "mermaid.min.js" in page.read_text()}
    assert "architecture.html" in drawn
    assert "index.html" not in drawn


def test_the_front_page_begins_as_the_readme_does():
    first = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)
    texts = [path.read_text() for path in (ROOT / "README.md", DOCS / "index.md")]
    readme, front = (text[: found.end()] for text in texts if (found := first.search(text)))
    assert front == readme


def test_every_page_is_of_one_kind():
    outside = [page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in KINDS]
    assert outside == [DOCS / "index.md"]


@pytest.mark.parametrize("package", EXPORTING)
def test_everything_exported_is_in_the_reference_once(package):
    exported = set(importlib.import_module(package).__all__) - ERRORS
    assert sorted(exported) == sorted(set(shown_of(package)) - {"errors"})  # whose docstring has the tree


def test_every_error_is_in_the_reference_once():
    assert len(ERRORS) > 20
    assert sorted(ERRORS) == sorted(shown_of("fanin.errors"))


def shown_of(package: str) -> list[str]:
    """The names of a package that the pages show."""
    return re.findall(rf"^::: {re.escape(package)}\.(\w+)$", LIBRARY, re.MULTILINE)


@pytest.mark.parametrize(
    ("source", "markdown", "shown"),
    [
        # A page of the site is linked, from wherever it is
        ("how-to/hold.md", "[all](redrive.md#stop)", "[all](redrive.md#stop)"),
        ("project/security.md", "[hold](docs/how-to/hold.md#release)", "[hold](../how-to/hold.md#release)"),
        ("how-to/spark/ack.md", "[new](../../../CHANGELOG.md)", "[new](../../project/changelog.md)"),
        ("project/contributing.md", "[calls](README.md#api)", "[calls](readme.md#api)"),
        # What the site does not have is named
        ("how-to/hold.md", "[the app](../../app.py)", "the app (`app.py`)"),
        # Code, addresses and anchors stay as they are
        ("how-to/hold.md", "```\n[a](../../app.py)\n```", "```\n[a](../../app.py)\n```"),
        ("how-to/hold.md", "[a](https://example.com) [b](#b)", "[a](https://example.com) [b](#b)"),
    ],
)
def test_a_link_leads_to_the_same_place_on_the_site(source, markdown, shown):
    assert changed(markdown, source) == shown


def test_a_link_out_of_the_folder_that_leads_nowhere_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        changed("[gone](../../gone.py)", "how-to/hold.md")
    assert "docs/how-to/hold.md links to ../../gone.py, which is not there" in caplog.text


@pytest.mark.parametrize(
    ("docstring", "shown"),
    [
        ("Make one with ``tracker``::\n\n    Tracker()", "Make one with `tracker`:\n\n    Tracker()"),
        ("For tests.\n\n::\n\n    Tracker()", "For tests.\n\n    Tracker()"),
        ("Seconds: see ``a::b``.", "Seconds: see `a::b`."),
        ("``a < b``, <b>\n\n    a < b", "`a < b`, &lt;b>\n\n    a < b"),
    ],
)
def test_a_docstring_is_markdown(docstring, shown):
    assert library.as_markdown(docstring) == shown


def test_no_page_of_the_library_shows_the_marks_of_other_markup(site):
    for page in (site / "reference" / "library").glob("*.html"):
        text = re.sub(r"<pre.*?</pre>|<code.*?</code>", "", page.read_text(), flags=re.DOTALL)
        assert re.findall(r"[^<>]*::\s*<|:\w+:`[^<]*", text) == [], page.name
