"""The table of docs/start.md; `PYTHONPATH=tests python -m support.house.start_page` prints it."""

from kafka_segments.kafka.broker_rules.start.rules import RULES


def table() -> str:
    """Return the rows of the start's table as Markdown."""
    lines = ["| file | state | the start | exception, class | before the start |", "|" + "---|" * 5]
    for rule in RULES.values():
        effect = "loses the directory, or ends" if rule.effect is None else rule.effect.value
        thrown = f"`{rule.exception}`, " if rule.exception else ""
        cells = (f"`{rule.file}`", rule.state, effect, f"{thrown}{rule.source}", rule.step)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
