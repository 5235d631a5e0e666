"""The verbs of the command line, one module each: options in, results out, an exit status."""
