"""What a draw cost: seconds and tokens, as the model's server reported them."""

from __future__ import annotations

from evalrun.records import Metric, Sample
from evalrun.scorers import SCORERS, Scorer
from evalrun.scorers.text import no_depth


@SCORERS("latency")
def latency(k: int | None) -> Scorer:
    """Seconds of a draw's model calls (in replay the recorded ones), or of the answer where none is seen."""
    no_depth("latency", k)
    metric = Metric(id="latency", event="seconds an answer took", kind="quantity", better="lower", unit="s")
    return Scorer("latency", (metric,), lambda sample: {metric.id: sample.draw.seconds})


@SCORERS("tokens")
def tokens(k: int | None) -> Scorer:
    """Tokens of an answer as the server counted them; not applicable where it does not."""
    no_depth("tokens", k)
    metric = Metric(id="tokens", event="tokens of an answer", kind="quantity", better="lower", unit="tokens")

    def measure(sample: Sample) -> dict[str, float | None]:
        count = sample.draw.usage.completion_tokens
        return {metric.id: None if count is None else float(count)}

    return Scorer("tokens", (metric,), measure)
