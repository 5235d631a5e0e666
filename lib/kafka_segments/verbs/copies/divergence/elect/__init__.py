"""``divergence elect``: which copy each partition goes on with, and what that loses."""
