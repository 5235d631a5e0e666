"""``migrate stage``, ``verify``, ``apply``, ``rollback`` and ``status``: a plan carried out."""
