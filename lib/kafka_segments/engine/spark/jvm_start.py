"""Why Spark's JVM did not start, read from what Spark's scripts, the JVM and Python said.

``start_cause`` is a function of the text alone: a table of what is said, what it means and what to
do. The first row that fits counts, so a cause stands before what follows from it.
"""

import re
from typing import NamedTuple

from kafka_segments.errors import KafkaSegmentsError, SparkEndedError, UsageError

NO_START = "Spark's JVM did not start"
_LESS_MEMORY = "PYSPARK_SUBMIT_ARGS='--driver-memory 1g pyspark-shell'"
_TAKEN_UP = re.compile(r"Picked up (JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS):")
_ELSEWHERE = "PYSPARK_SUBMIT_ARGS, spark-defaults.conf or spark-env.sh"


class StartCause(NamedTuple):
    """What keeps a JVM from starting.

    Attributes:
        what: What was found.
        step: What to do.
        is_of_user: A setting, limit or file of the user's is to be changed, which is exit status 2;
            else something ran out.
    """

    what: str
    step: str
    is_of_user: bool = True


class _Rule(NamedTuple):
    """A row: a pattern, and texts that have its groups as {0} …, and {options}: who gave them."""

    said: str
    what: str
    step: str
    is_of_user: bool = True


_RULES = (
    _Rule(
        r"UnknownHostException: ([^\s:]+)",
        "the host name {0} does not resolve",
        "add it to /etc/hosts (127.0.0.1 {0}), or set SPARK_LOCAL_IP=127.0.0.1",
    ),
    _Rule(
        r"Too many open files|No file descriptors available",
        "more open files are needed than are allowed",
        "raise the limit by `ulimit -n 4096`, LimitNOFILE of the service or --ulimit nofile of the"
        " container",
    ),
    _Rule(
        r"unable to create (?:new )?native thread|pthread_create failed|can't start new thread"
        r"|fork: (?:retry: )?(?:Resource temporarily unavailable|Operation not permitted)"
        r"|Resource temporarily unavailable",
        "no more threads are allowed, by a limit of processes or by a seccomp filter",
        "raise `ulimit -u`, TasksMax of the service or --pids-limit of the container; an old Docker"
        " refuses what a new system calls: renew it",
    ),
    _Rule(
        r"(Invalid (?:maximum|initial) heap size: \S+|The specified size exceeds the maximum[^\n]*"
        r"|Initial heap size set to a larger value[^\n]*)",
        "the memory that was asked for is no size of a JVM's heap: {0}",
        f"correct what asks for it: --driver-memory in PYSPARK_SUBMIT_ARGS ({_LESS_MEMORY}),"
        " or -Xmx and -Xms in JAVA_TOOL_OPTIONS",
    ),
    _Rule(
        r"System memory \d+ must be at least (\d+)",
        "less memory was asked for than the {0} bytes that Spark needs",
        f"ask for more: {_LESS_MEMORY}",
    ),
    _Rule(
        r"Could not reserve enough space|insufficient memory for the Java Runtime"
        r"|Cannot allocate memory|Not enough space|std::bad_alloc"
        r"|Could not allocate (?:metaspace|compressed class space)"
        r"|Unable to allocate \S+ .*|OutOfMemoryError: (?:Java heap space|Metaspace)",
        "there is not enough memory for it",
        f"give the machine or container more, or ask for less: {_LESS_MEMORY}",
        is_of_user=False,
    ),
    _Rule(
        r"only recognizes class file versions up to (\d+)",
        "its Java is too old, it reads classes up to version {0}",
        "set JAVA_HOME to a Java 17 or 21; spark-env.sh may set another",
    ),
    _Rule(
        r"getSubject is (?:not supported|supported only if)|Security Manager is not supported"
        r"|Unsupported class file major version|NoSuchMethodException: java\.nio\.DirectByteBuffer",
        "its Java is newer than this Spark knows",
        "set JAVA_HOME to a Java 17 or 21",
    ),
    _Rule(
        r"^(Unrecognized (?:VM )?option:? .*|Error opening zip file or JAR manifest missing.*"
        r"|Error: Could not find agent.*|Could not find agent library.*|Improperly specified VM .*"
        r"|Missing \+/- setting for VM .*|Unexpected \+/- setting in VM .*|VM option '.*"
        r"|Conflicting collector combinations.*|Error: Cannot specify .*|Error: --\S+ requires .*"
        r"|ERROR: transport error 202: .*|Error: (?:JMX|Exception thrown by the agent).*"
        r"|Error: Unable to access jarfile.*|Error: could not (?:find|open) `.*)",
        "Java refuses an option that {options} has: {0}",
        "correct or unset it",
    ),
    _Rule(
        r"Failed to find Spark jars directory|(?:find or load main class|ClassNotFoundException:)"
        r" (?:\S+: )?org[./]apache[./]spark[./](?:launcher[./]Main|deploy[./]SparkSubmit)"
        r"|No such file or directory: '[^']*/bin/spark-submit'"
        r"|(?:load-spark-env|find-spark-home)\S*: No such file",
        "where it is looked for there is no whole Spark",
        "unset SPARK_HOME, or install pyspark anew",
    ),
    _Rule(
        r"When running with master '([^']*)' either HADOOP_CONF_DIR",
        "it was told to work for a cluster, {0}, whose configuration is not named",
        f"take --master out of {_ELSEWHERE}, or let spark-submit run this verb there",
    ),
    _Rule(
        r"\"file:([^\"]*-site\.xml)\"\]",
        "{0} is no whole XML, and HADOOP_CONF_DIR names its folder",
        "mend that file, or unset HADOOP_CONF_DIR if nothing lies in HDFS",
    ),
    _Rule(
        r"(KrbException: [^\n]*)",
        "Hadoop's configuration asks for Kerberos, which is not set up here: {0}",
        "run kinit and look at /etc/krb5.conf, or unset HADOOP_CONF_DIR if nothing lies in HDFS",
    ),
    _Rule(
        r"Missing application resource|Error: Unrecognized option: (?:\S+)|Usage: spark-submit"
        r"|requires a value\b|Missing argument for option",
        "spark-submit does not take the arguments that it was given",
        "correct or unset PYSPARK_SUBMIT_ARGS; it ends in pyspark-shell",
    ),
    _Rule(
        r"JAVA_HOME is not set",
        "no Java was found",
        "install a Java 17 or 21, or set JAVA_HOME to one",
    ),
    _Rule(
        r"(\S*/bin/java): (No such file or directory|Permission denied|cannot execute[^\n]*"
        r"|Is a directory|Not a directory|not found)",
        "its Java cannot be run, {0}: {1}",
        "set JAVA_HOME to the folder of a Java 17 or 21 that was made for this machine",
    ),
    _Rule(
        r"(error while loading shared libraries: [^\n]*|could not find (?:libjava|libjvm)\S*"
        r"|Could not find Java SE Runtime Environment|failed to find (?:VM|JVM)[^\n]*"
        r"|no `(?:server|client)' JVM at[^\n]*|Failed setting boot class path)",
        "its Java is not whole: {0}",
        "install it anew, or set JAVA_HOME to another Java 17 or 21",
    ),
    _Rule(
        r"Error loading java\.security file",
        "its Java cannot open its own file java.security",
        "if `ulimit -n` is below 256, raise it; else install Java anew, or set another JAVA_HOME",
    ),
    _Rule(
        r"env: \W?bash\W?: No such file|: bash: not found|bad interpreter",
        "Spark's scripts need bash, which is not there",
        "install bash (e.g. apk add bash, apt-get install bash)",
    ),
    _Rule(
        r"No space left on device|Disk quota exceeded",
        "the folder of temporary files, or another that Spark writes to, is full",
        "make room, or set TMPDIR to a folder with room",
        is_of_user=False,
    ),
    _Rule(
        r"No usable temporary directory found in (\[[^\]]*\])",
        "no folder takes temporary files (full, or not writable for this user): {0}",
        "make room, or set TMPDIR to a folder of this user",
    ),
    _Rule(
        r"UnsatisfiedLinkError: (\S+): .*failed to map segment from shared object",
        "a library may not be loaded from the folder of temporary files, which is mounted noexec:"
        " {0}",
        "set TMPDIR to a folder on another file system",
    ),
    _Rule(
        r"invalid null input: name|UnixPrincipal|LoginException",
        "this user's number has no name",
        'add it to /etc/passwd (as root: echo "kafka:x:$(id -u):$(id -g)::/tmp:/bin/sh" >>'
        " /etc/passwd), or run as a user who has one",
    ),
    _Rule(
        r"(?:BindException|SocketException): ([^\n:]+)",
        "it may not listen on this machine's own address: {0}",
        "unset SPARK_LOCAL_IP, spark.driver.host, spark.driver.bindAddress and"
        " spark.driver.port, and look whether the loopback interface is up (ip addr show lo)",
    ),
    _Rule(
        r"Connection refused|Network is unreachable|Cannot assign requested address"
        r"|actively refused",
        "it cannot be reached on 127.0.0.1",
        "look whether the loopback interface is up (ip link set lo up) and no firewall refuses it",
    ),
    _Rule(
        r"([^\n]*(?:Read-only file system|Permission denied|AccessDeniedException"
        r"|Operation not permitted)[^\n]*)",
        "it may not read or write a file: {0}",
        "let this user have it, or set TMPDIR and HOME to folders of this user",
    ),
)


def start_error(text: str) -> KafkaSegmentsError | None:
    """Return the error of a start by what was said; None: nothing of it is known."""
    cause = start_cause(text)
    if cause is None:
        return None
    if cause.is_of_user:
        return UsageError(f"{NO_START}: {cause.what}: {cause.step}")
    return SparkEndedError(f"{NO_START}: {cause.what}", cause.step, is_understood=True)


def start_cause(text: str) -> StartCause | None:
    """Return what a text says of the cause; None: nothing that the table knows.

    ``text``: all that a start printed, stdout and stderr alike, and Python's own error.
    """
    picked = _TAKEN_UP.search(text)
    options = picked[1] if picked else _ELSEWHERE
    for rule in _RULES:
        found = re.search(rule.said, text, re.MULTILINE)
        if found is not None:
            groups = [(group or "").strip() for group in found.groups()]
            what, step = (t.format(*groups, options=options) for t in (rule.what, rule.step))
            return StartCause(what, step, rule.is_of_user)
    return None
