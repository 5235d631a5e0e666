"""`make mutants`: change one place of the package at a time and see whether a test notices."""
