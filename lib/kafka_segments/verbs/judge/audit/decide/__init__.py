"""Judge index files by what their log gives, and say what a broker makes of them."""
