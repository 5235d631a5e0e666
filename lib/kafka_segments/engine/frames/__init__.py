"""What verbs do with rows, by one of two engines (``engines``); no verb asks which one."""
