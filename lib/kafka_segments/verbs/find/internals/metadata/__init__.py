"""KRaft's metadata log: its copies, the image at a point of it, and what changed since."""
