"""What every verb shares towards the person: options, exit status, forms of output."""
