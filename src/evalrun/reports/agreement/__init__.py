"""How the judge's agreement with labels reads: on the screen and as a page of all disagreements."""
