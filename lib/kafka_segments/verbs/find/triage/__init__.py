"""``triage``: what is wrong with a broker's directories, and what to do, on one page."""
