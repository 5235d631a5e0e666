"""What the script of ``elect`` does itself between Kafka's tools: it waits, and stops.

It is POSIX shell with awk and sed.

Source: what BrokerApiVersionsCommand and TopicCommand print (4.3.1).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

SERVER = '--bootstrap-server "$BOOTSTRAP"'
_LEADERS_FILE = "leaders.txt"
_HEAD = f"""\
#!/bin/sh
# Run it in a folder of its own: BOOTSTRAP=HOST:PORT,HOST:PORT sh SCRIPT, with brokers of each step.
# It says which brokers to start, waits until they run and their partitions are led, and stops where
# a step fails. What is done already is left as it is when it runs again.
set -eu
: "${{BOOTSTRAP:?HOST:PORT of brokers expected, as BOOTSTRAP=broker1:9092,broker2:9092 sh SCRIPT}}"

fail() {{
  echo "$*" >&2
  exit 1
}}

# Prints those of the brokers $1 that do not run.
lacking() {{
  up=" $(kafka-broker-api-versions.sh {SERVER} 2>kafka-tool.err |
    sed -n 's/.*(id: \\([0-9]*\\) .*-> ($/\\1/p' | tr '\\n' ' ')"
  for broker in $1; do
    case "$up" in *" $broker "*) ;; *) printf ' %s' "$broker" ;; esac
  done
}}

# Says $1, and waits until the brokers $2 run; of $3, which come later, none may.
await_brokers() {{
  echo "$1"
  told=
  while :; do
    missing=$(lacking "$2 $3")
    for broker in $3; do
      case "$missing " in *" $broker "*) ;; *)
        fail "broker $broker runs, and its step has not come: stop it, and run this again" ;;
      esac
    done
    waiting=
    for broker in $2; do
      case "$missing " in *" $broker "*) waiting="$waiting $broker" ;; esac
    done
    [ -n "$waiting" ] || return 0
    [ "$waiting" = "$told" ] || echo "  waiting for brokers$waiting, by way of $BOOTSTRAP"
    told=$waiting
    sleep 5
  done
}}

# Prints those partitions of file $1 that have no leader, or one of the brokers named behind them.
unled() {{
  until kafka-topics.sh {SERVER} --describe >partitions.txt 2>kafka-tool.err; do
    echo "  kafka-topics.sh fails, see kafka-tool.err; trying again" >&2
    sleep 5
  done
  awk 'NR == FNR {{ late[$1 " " $2] = "," $3 ","; next }}
    $3 == "Partition:" && ($2 " " $4) in late {{
      if (index(late[$2 " " $4], "," $6 ",")) print $2 "-" $4 " by " $6
      else if ($6 !~ /^[0-9]+$/) print $2 "-" $4
      delete late[$2 " " $4]
    }}
    END {{ for (one in late) print one, "is not told of" }}' "$1" partitions.txt
}}

# Waits until no partition of file $1 has a leader that is named behind it: the controller needs a
# moment to see that a broker does not run (broker.session.timeout.ms).
await_fenced() {{
  told=
  while :; do
    leaders=$(unled "$1" | sed -n 's/.* by //p' | sort -u | tr '\n' ' ')
    [ -n "$leaders" ] || return 0
    missing=$(lacking "$leaders")
    for broker in $leaders; do
      case "$missing " in *" $broker "*) ;; *)
        fail "broker $broker runs, and leads partitions of which another has the records to keep" ;;
      esac
    done
    [ "$leaders" = "$told" ] || echo "  waiting until the controller leaves out brokers $leaders"
    told=$leaders
    sleep 5
  done
}}

# Waits until each partition of file $1 has a leader that is not named behind it.
await_leaders() {{
  told=
  while :; do
    left=$(unled "$1")
    [ -n "$left" ] || return 0
    [ "$left" = "$told" ] || printf '  waiting for a leader of:\n%s\n' "$left"
    told=$left
    sleep 5
  done
}}
"""


def head() -> Iterator[str]:
    """Yield the first lines of a script: what it is, and its functions."""
    yield from _HEAD.splitlines()


def ask_first() -> Iterator[str]:
    """Yield the lines that stop a script until somebody says that its comments were read."""
    yield 'if [ "${DECIDED:-}" != yes ]; then'
    yield (
        '  fail "Some partitions are left to decide by hand: they stand in this script. Read there'
        ' what they lose, and run it with DECIDED=yes"'
    )
    yield "fi"


def await_brokers(text: str, brokers: Iterable[int], later: Collection[int]) -> Iterator[str]:
    """Yield the lines that say what to start, and wait.

    Args:
        text: what to start; without quotes.
        brokers: those that have to run then.
        later: those that must not yet.
    """
    yield f"await_brokers '{text}' '{_spaced(brokers)}' '{_spaced(later)}'"


def write_leaders(partitions: Iterable[tuple[str, int, Sequence[int]]]) -> Iterator[str]:
    """Yield the lines that note partitions, and the brokers that must not lead them."""
    yield f"cat > {_LEADERS_FILE} <<'END'"
    for topic, number, late in partitions:
        yield f"{topic} {number} {','.join(map(str, late)) or '-'}"
    yield "END"


def unless_led(commands: Iterable[str]) -> Iterator[str]:
    """Yield commands that are left out if the partitions that were noted last are led."""
    yield f"await_fenced {_LEADERS_FILE}"
    yield f'if [ -n "$(unled {_LEADERS_FILE})" ]; then'
    yield from commands
    yield "fi"


def await_leaders() -> str:
    """Return the command that waits until the partitions that were noted last are led."""
    return f"await_leaders {_LEADERS_FILE}"


def if_all_run(brokers: Iterable[int], command: str) -> Iterator[str]:
    """Yield a command for when some brokers run; where one does not, it is printed."""
    yield f"missing=$(lacking '{_spaced(brokers)}')"
    yield f'if [ -z "$missing" ]; then {command}'
    yield "else cat <<'END'"
    yield f"Not all of brokers {_spaced(brokers)} run. Once they do, run in this folder:"
    yield f"  {command}"
    yield "END"
    yield "fi"


def _spaced(brokers: Iterable[int]) -> str:
    return " ".join(map(str, brokers))
