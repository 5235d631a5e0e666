"""Roll: which active segments roll, and what other settings would have given."""
