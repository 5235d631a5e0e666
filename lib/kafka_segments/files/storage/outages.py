"""Stores and file systems that do not answer for now, told from what is wrong with a question.

Arrow tells the errors of stores in words alone. Those here are its own, of AWS's SDK, of Google's
and of Hadoop's client, by which each of them says that another try may succeed.
"""

import errno
import re

_ERRNOS = {
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN),
    *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EHOSTUNREACH),
    *(errno.ENETDOWN, errno.ENETUNREACH),
}
"""Of a mount whose server, disk or process behind it has gone."""
_OF_AWS = re.compile(
    r"AWS Error (?:NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|THROTTLING"
    r"|REQUEST_TIMEOUT|UNKNOWN \(HTTP status (?:429|5\d\d)\)) "
)
_OF_OTHERS = re.compile(
    r"google::cloud::Status\((?:UNAVAILABLE|DEADLINE_EXCEEDED|INTERNAL|RESOURCE_EXHAUSTED)\b"
    r"|\bHTTP status (?:429|5\d\d)\b"
    r"|\b(?:ConnectException|NoRouteToHostException|SocketTimeoutException|UnknownHostException"
    r"|ConnectTimeoutException|SafeModeException|StandbyException|RetriableException)\b"
)
_OF_REQUESTS = {"requests.exceptions.ConnectionError", "requests.exceptions.Timeout"}


def is_outage(error: BaseException) -> bool:
    """Tell whether an error says that what was asked does not answer for now.

    What answers that something is not there, or may not be read, is no outage.
    """
    if isinstance(error, FileNotFoundError | PermissionError):
        return False
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return True
    if isinstance(error, ConnectionError | TimeoutError) or _is_of_requests(error):
        return True
    text = str(error)
    return bool(_OF_AWS.search(text) or _OF_OTHERS.search(text))


def _is_of_requests(error: BaseException) -> bool:
    """Tell whether no answer came to a request over HTTP; the library may not be installed."""
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    return not names.isdisjoint(_OF_REQUESTS)
