"""Pages in Chromium without a network; the screenshots are in build/screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

Open = Callable[..., Any]
"""Opens the text of a page; see `open_page`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder: they are slow, and need Chromium."""
    reason = "no Chromium: apt-get install chromium"
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.skipif(BROWSER is None, reason=reason))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with an empty profile."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install 'hlo-indexing[browser]'"
    )
    with playwright.sync_playwright() as started:
        profile = tmp_path_factory.mktemp("profile")
        browser = started.chromium.launch_persistent_context(
            profile, executable_path=BROWSER, args=OPTIONS, headless=True
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens pages; at the end, the console is empty and no request left them."""
    messages: list[str] = []
    requests: list[str] = []
    pages: list[Any] = []

    def open_page(
        html: str,
        size: tuple[int, int] = (1280, 800),
        theme: str = "light",
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Any:
        """Open a page, and wait until it sets ``data-ready``; it may call `functions`."""
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page()
        pages.append(page)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=theme)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        for name, function in (functions or {}).items():
            page.expose_function(name, function)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "blob:"))] == []
    assert len({url for url in requests if url.startswith("file:")}) == len(pages)


@pytest.fixture(scope="session")
def shoot() -> Callable[[Any, str], None]:
    """Writes a screenshot of a page."""

    def write(page: Any, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png")

    return write
