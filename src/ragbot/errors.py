"""What ragbot tells a person when something cannot go on.

Owns one error with what is wrong and what to do, and the two kinds the service must tell apart. The CLI
shows them without a traceback; the service turns them into a status and a short JSON text.
"""

from __future__ import annotations


class RagbotError(Exception):
    """Something the user can mend: ``message`` says what and where, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n    {self.hint}" if self.hint else self.message


class QuestionError(RagbotError):
    """A question that cannot be searched for or answered as it stands."""


class ModelError(RagbotError):
    """The model server did not give a whole answer.

    ``message`` never holds text of the server, which may repeat the prompt; ``detail`` does, cut short, for
    the person who started ragbot.
    """

    def __init__(self, message: str, hint: str = "", detail: str = "") -> None:
        super().__init__(message, hint)
        self.detail = detail[:300]
