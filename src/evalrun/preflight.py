"""Whether a run can be made at all, before anything is spent: its model servers, and the files it may open.

Owns which servers a run needs and what to do where nobody listens, and how many connections it will have. A
bot could only pass the failure of its model on, one draw after the other; what a server says once it listens
belongs to those who ask it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from evalrun.cassette import Cassette
from evalrun.errors import UnavailableError, UserError
from evalrun.network import why_silent
from evalrun.planning import Plan, target_of
from evalrun.settings import OLLAMA_PORT

_OWN_FILES = 96
"""What is open beside connections: journals, modules, a bot's pipes."""


async def check_servers(plan: Plan, cassette: Cassette) -> None:
    """Refuse a run whose model server is not there. A recording that holds something may need none.

    Raises:
        UnavailableError: nothing listens; says what to do.
    """
    if plan.mode == "replay" or (plan.mode == "record" and cassette.recorded is not None):
        return
    for url in dict.fromkeys(filter(None, _servers(plan))):
        if why := await why_silent(url):
            raise UnavailableError(f"the model server at {url} does not answer: {why}", _hint(plan, url))


def allow_connections(plan: Plan) -> None:
    """Let this process open as many files as the run will have connections, where the system does not yet.

    Raises:
        UserError: the system forbids it; says how many may be asked at once.
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    each, asked, judged = _connections(plan)
    needed = _OWN_FILES + each * asked + judged
    if resource.RLIM_INFINITY in (soft, hard) or needed <= soft:
        return
    if needed > hard:
        most = max((hard - _OWN_FILES) // (each + bool(judged)), 1)
        raise UserError(
            f"{asked + judged} calls at once need {needed} open files, this system allows {hard}",
            f"write a limits.concurrency of {most} for target and judge, or raise the limit (ulimit -n)",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _connections(plan: Plan) -> tuple[int, int, int]:
    """How many an answer takes (to the bot, from it, to its model); how many answers and verdicts at once."""
    config, live = plan.config, plan.mode != "replay"
    each = 1 + config.tapped + (config.tapped and live)
    asked = min(config.target.limits.concurrency, plan.draws) if plan.answers is None else 0
    verdicts = plan.judged and live and config.judge is not None
    judged = min(config.judge.limits.concurrency, plan.draws) if verdicts and config.judge else 0
    return each, asked, judged


def _servers(plan: Plan) -> Iterator[str]:
    """The bot's, as far as its calls pass the tap, and the judge's."""
    config = plan.config
    if plan.answers is None and config.target.tapped:
        own = getattr(config.target.options, "url", None) if target_of(config).is_model else None
        yield own or config.upstream
    if plan.judged and config.judge is not None:
        yield config.judge.base_url or ""


def _hint(plan: Plan, url: str) -> str:
    recorded = plan.config.cassette is not None and plan.config.cassette.path.is_dir()
    replay = "; or leave out --live: the recording is replayed" if plan.mode == "live" and recorded else ""
    if _is_ollama(plan, url):
        start = "start it (ollama serve), or say where it is: OLLAMA_HOST, or its address in the config"
    else:
        start = "start it, or mend its address in the config"
    return start + replay


def _is_ollama(plan: Plan, url: str) -> bool:
    """Whether the config says so (the judge's provider, what the bot is told), or Ollama's own port does."""
    judge, launch = plan.config.judge, plan.config.target.launch
    if judge is not None and judge.base_url == url:
        return judge.model.startswith("ollama/")
    told = launch is not None and "OLLAMA_HOST" in launch.env
    return told or url == os.environ.get("OLLAMA_HOST") or urlsplit(url).port == OLLAMA_PORT
