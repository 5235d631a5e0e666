"""Latency: append time less create time, by topic and hour."""
