"""Lines for the shell: typed at a terminal, with history and completion, or read from stdin."""

import contextlib
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from kafka_segments.errors import TerminatedError
from kafka_segments.files.storage.user_folders import state_folder

_PROMPT = "kafka-segments> "
_LEAVE = ("exit", "help", "quit")


def lines_typed(group: click.Group) -> Iterator[str]:
    """Yield what is typed, line by line, until Ctrl-D; Ctrl-C empties the line."""
    session: PromptSession[str] = PromptSession(
        history=_history(), completer=VerbCompleter(group), complete_while_typing=False
    )
    while True:
        try:
            yield session.prompt(_PROMPT)
        except TerminatedError:
            raise
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def lines_of_stdin() -> Iterator[str]:
    """Yield the lines of stdin, where that is no terminal."""
    for line in sys.stdin:
        yield line.rstrip("\n")


def history_file() -> Path:
    """Return where typed lines are kept."""
    return state_folder() / "history"


def _history() -> History:
    """Open the history, for its user's eyes alone; without a place for it it lasts as the shell."""
    with contextlib.suppress(OSError, RuntimeError):
        file = history_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        if os.access(file, os.R_OK | os.W_OK):
            return FileHistory(file)
    return InMemoryHistory()


class VerbCompleter(Completer):
    """Completes as the verbs do in any other shell, by click."""

    def __init__(self, group: click.Group) -> None:
        self._click = ShellComplete(group, {}, "kafka-segments", "")
        self._paths = PathCompleter(expanduser=True)
        self._folders = PathCompleter(expanduser=True, only_directories=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return what the word before the cursor can become."""
        words, begun = _words(document.text_before_cursor)
        if not words:
            yield from (Completion(word, -len(begun)) for word in _LEAVE if word.startswith(begun))
        for item in self._click.get_completions(words, begun):
            yield from self._completions(item, begun, complete_event)

    def _completions(
        self, item: CompletionItem, begun: str, event: CompleteEvent
    ) -> Iterable[Completion]:
        if item.type in ("file", "dir"):
            paths = self._folders if item.type == "dir" else self._paths
            yield from paths.get_completions(Document(begun), event)
        else:
            yield Completion(item.value, -len(begun), display_meta=item.help)


def _words(text: str) -> tuple[list[str], str]:
    """Split a line into its whole words and the one that is begun, "" after a space."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote is open
        words = text.split()
    if not words or text[-1].isspace():
        return words, ""
    return words[:-1], words[-1]
