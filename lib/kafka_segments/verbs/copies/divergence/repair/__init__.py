"""``divergence repair``: one whole log made of the sound parts of copies."""
