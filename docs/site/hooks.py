"""What the site needs beyond MkDocs: pages of the repository's top folder, links out of docs/, and diagrams.

Pages are written to be read in the repository, too, so a link may lead to any of its files. The site has
the pages of ``PROJECT``; of any other file outside docs/ it shows the path.
"""

import logging
import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tests.npm.packages import Package

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
# The theme would load this from a server on the internet.
MERMAID: Final = Package(
    "mermaid",
    "11.9.0",
    "YdPXn9slEwO0omQfQIsW6vS84weVQftIyyTGAZCwM//MGhPzL1+l6vO6bkf0wnP4tHigH1alZ5Ooy3HXI2gOag==",
)
SCRIPT: Final = "assets/mermaid.min.js"

_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCED: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_log: Final = logging.getLogger("mkdocs.hooks.fanin")


def mermaid() -> Path:
    """The script that draws diagrams, fetched unless it is there already."""
    return MERMAID.unpacked(ROOT / ".fanin" / "npm") / "dist" / "mermaid.min.js"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the top folder and the script for diagrams."""
    for name, page in PROJECT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    files.append(File.generated(config, SCRIPT, abs_src_path=str(mermaid())))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Change links that lead out of docs/ and those of pages from outside."""
    sources = {page: name for name, page in PROJECT.items()}
    uri = page.file.src_uri
    source = sources.get(uri, f"docs/{uri}")
    parts = _FENCED.split(markdown)
    parts[::2] = [_LINK.sub(lambda link: _link(link, source, uri), part) for part in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Load the script for diagrams where a page has one."""
    if 'class="mermaid"' not in output:
        return output
    script = posixpath.relpath(SCRIPT, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)


def _link(link: re.Match[str], source: str, uri: str) -> str:
    path, _, anchor = link["target"].partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return link[0]
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if file in PROJECT:
        file = f"docs/{PROJECT[file]}"
    elif not (ROOT / file).exists():
        _log.warning("%s links to %s, which is not there", source, link["target"])
    if not file.startswith("docs/"):
        return f"{link['text']} (`{file}`)" if link["text"].strip("`") != file else f"`{file}`"
    target = posixpath.relpath(file.removeprefix("docs/"), posixpath.dirname(uri) or ".")
    return f"{link['image']}[{link['text']}]({target}{'#' if anchor else ''}{anchor})"
