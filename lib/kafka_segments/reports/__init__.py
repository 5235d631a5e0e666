"""What a person reads, one module a verb: results on stdout, progress and summaries on stderr."""
