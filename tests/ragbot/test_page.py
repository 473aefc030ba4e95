"""The chat page: nothing from elsewhere, nothing as markup."""

from __future__ import annotations

import base64
import hashlib
import re

from ragbot_fakes import client_of, make_twin

from ragbot.page import load_page


async def test_page_is_served_under_its_policy() -> None:
    """The policy allows the page's own script and style by their hashes, and connections to itself."""
    twin, _ = make_twin()
    async with client_of(twin, trace=False) as client:
        response = await client.get("/")
    policy = dict(part.split(" ", 1) for part in response.headers["content-security-policy"].split("; "))
    assert "text/html; charset=utf-8" == response.headers["content-type"]
    assert "'none'" == policy["default-src"]
    assert "'self'" == policy["connect-src"]
    assert "unsafe" not in response.headers["content-security-policy"]
    for element in ("script", "style"):
        text = re.search(rf"<{element}>(.*?)</{element}>", response.text, re.DOTALL)
        assert text is not None
        digest = base64.b64encode(hashlib.sha256(text[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" == policy[f"{element}-src"]


def test_page_asks_nobody_else() -> None:
    """No address but that of the SVG namespace stands in the page."""
    html, _ = load_page()
    assert {"http://www.w3.org/2000/svg"} == set(re.findall(r"https?://[^\s'\"]+", html))
    assert not re.search(r"<(link|script|img|iframe)[^>]+(src|href)=\"(?!data:)", html)


def test_page_makes_no_markup_of_text() -> None:
    """What comes from profile, model or reader can only be set as text; the policy forbids the rest."""
    html, _ = load_page()
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc|setHTML"
    assert not re.search(sinks, html)
    assert not re.search(r"\son[a-z]+=|\sstyle=", html)
