"""ragbot: a digital twin that answers from one Markdown profile."""
