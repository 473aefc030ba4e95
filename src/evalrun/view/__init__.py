"""Run folders in a browser: which runs there are, how the numbers of a config went, and each run's report.

A viewer reads run folders and writes nothing. The reports it shows are made anew from the journals; an HTML
file that lies in a run folder is not served.
"""
