"""A comparison of two runs as text: for a terminal, as Markdown, as a page.

Owns how it reads; what is compared and decided comes from :mod:`evalrun.comparison`.
"""
