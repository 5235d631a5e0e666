"""What lies under the sources: folders listed, segments and other files told apart."""
