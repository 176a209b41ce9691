"""Hooks of MkDocs for `make docs`: they add pages from beside `docs/`, and draw diagrams without a network."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
"""Pages that stand beside `docs/`, and their names in the site."""
SCRIPTS = ROOT / "requirements" / "site" / "node_modules"
DIAGRAMS = "assets/mermaid.min.js"
SEARCH = "assets/iframe-worker.js"
_FETCHED = "https://unpkg.com/iframe-worker/shim"
"""Whence the theme takes the script that searches in a folder without a server."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from beside `docs/`, and the scripts that the theme would fetch from elsewhere."""
    for name, place in BESIDE.items():
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, DIAGRAMS, abs_src_path=str(SCRIPTS / "mermaid/dist/mermaid.min.js")))
    files.append(File.generated(config, SEARCH, abs_src_path=str(SCRIPTS / "iframe-worker/shim/index.js")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Lead links to pages beside `docs/` to their places in the site."""
    up = "../" * page.file.src_uri.count("/")
    for name, place in BESIDE.items():
        markdown = markdown.replace(f"](../{up}{name}", f"]({up}{place}")
    return markdown


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Take scripts from the site itself, and that of diagrams only where there is one."""
    folder = posixpath.dirname(page.file.dest_uri) or "."
    output = output.replace(_FETCHED, posixpath.relpath(SEARCH, folder))
    if 'class="mermaid"' not in output:
        return output
    return output.replace("</head>", f'<script src="{posixpath.relpath(DIAGRAMS, folder)}"></script></head>', 1)


def on_post_template(output: str, *, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Take the script of the search from the site on pages of no document, too."""
    return output.replace(_FETCHED, SEARCH)
