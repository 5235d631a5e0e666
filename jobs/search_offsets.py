"""Find offsets for timestamps: `kafka-segments search`."""

from kafka_segments.verbs.find.search.command import search

if __name__ == "__main__":
    search(prog_name="search_offsets.py")
