"""The chat page as the browser gets it.

Owns reading ``page.html`` and the policy that lets the browser run and fetch nothing but what stands in it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files


def load_page() -> tuple[str, str]:
    """(HTML, value of its Content-Security-Policy header): its own script and style, by their hashes."""
    html = files("ragbot").joinpath("page.html").read_text("utf-8")
    policy = (
        "default-src 'none'",
        f"script-src {_hashes(html, 'script')}",
        f"style-src {_hashes(html, 'style')}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
    return html, "; ".join(policy)


def _hashes(html: str, element: str) -> str:
    found = re.findall(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
