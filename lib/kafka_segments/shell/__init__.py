"""``shell``: the verbs typed one after the other, in one warm session."""
