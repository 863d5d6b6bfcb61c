"""Every error that ldpkit raises on purpose. Messages never contain a true answer.

Each class has an `exit_code`, one of the EXIT_… below: a command that raises the error exits with it.
Each error has a `code` that names the problem. Programs can compare it: it stays when the words change.

LdpkitError
├── DocumentError         a document is wrong: has .field and .problem
│   ├── StudyError
│   ├── ReportError
│   ├── SummaryError
│   └── StatementError    from a node of a secure sum
├── AnswerError           an answer does not fit its question: has .field
├── RefusedError          the device's policy or ledger says no
│   ├── BudgetError       the privacy budget would be exceeded
│   └── AlreadyAnsweredError
├── LedgerError           the device's ledger cannot be read or written
├── TransferError         a server could not be reached or said no
├── RandomnessError       random bytes are missing or their source is broken
├── InputError            a file, option or setting given by a person is wrong
│   └── UsageError        the command line is wrong, whatever the files contain
└── MissingExtraError     an optional part of ldpkit is not installed
"""

from collections.abc import Callable
from typing import Any, Self

# Exit codes of the command `ldpkit`. 0: done, and any result that was judged can be trusted.
EXIT_OTHER = 1
# The command line is wrong, whatever the files contain; click uses the same code.
EXIT_USAGE = 2
# An input was read, or a device was asked, and refused.
EXIT_REFUSED = 3
# The result was written, but the command's checks say not to trust it.
EXIT_NOT_TRUSTED = 4
EXIT_NETWORK = 5
# 128 plus the signal's number.
EXIT_HUNG_UP = 129
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class LdpkitError(Exception):
    """Base of all errors that ldpkit raises on purpose; `str(error)` is one line, without any true answer.

    Args:
        message: the line.
        code: as below; "" for the code of the class.

    Attributes:
        exit_code: the exit code of a command that raises this error.
        code: names the problem, such as "device.no_consent". It stays when the words change.
    """

    exit_code = EXIT_OTHER
    code = "ldpkit.error"

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        if code:
            self.code = code

    @classmethod
    def say(cls, which: str, *arguments: str, **facts: Any) -> Self:
        """Return an error whose message is a sentence of the catalogue; its code is the sentence's key.

        Args:
            which: the sentence's key.
            arguments: the class's arguments before its message, such as the field of a document.
            facts: the values that the sentence contains.
        """
        from ldp_client.words.text import say

        make: Callable[..., Self] = cls
        return make(*arguments, say(which, **facts), code=which)


class DocumentError(LdpkitError):
    """A document breaks its format.

    Args:
        field: dotted path of the offending part, such as "questions[0].mechanism"; "" for the whole document.
        problem: what is wrong with it, in words.
        code: as of every LdpkitError.

    Attributes:
        kind: the kind of document, in one word; the message begins with it.
        field: as given.
        problem: as given.
    """

    exit_code = EXIT_REFUSED
    code = "document.invalid"
    kind = "document"

    def __init__(self, field: str, problem: str, code: str = "") -> None:
        super().__init__(f"{self.kind}: {field}: {problem}" if field else f"{self.kind}: {problem}", code)
        self.field = field
        self.problem = problem


class StudyError(DocumentError):
    """A study document is not valid."""

    code = "study.invalid"
    kind = "study"


class ReportError(DocumentError):
    """A report is not valid, or no device could have sent it."""

    code = "report.invalid"
    kind = "report"


class SummaryError(DocumentError):
    """A summary is not valid or belongs to another study."""

    code = "summary.invalid"
    kind = "summary"


class StatementError(DocumentError):
    """A statement of a secure sum's node, or a request to it, is not valid or not signed by the node."""

    code = "statement.invalid"
    kind = "statement"


class AnswerError(LdpkitError):
    """An answer does not fit its question; raised before any noise is spent.

    Args:
        field: the question, or the part of its answer that is wrong; "answers" or "" for all answers
            together.
        problem: what is wrong, in words that do not repeat the answer.
        code: as of every LdpkitError.

    Attributes:
        field: as given.
        problem: as given.
    """

    exit_code = EXIT_REFUSED
    code = "answer.invalid"

    def __init__(self, field: str, problem: str, code: str = "") -> None:
        super().__init__(f"answer: {field}: {problem}" if field else f"answer: {problem}", code)
        self.field = field
        self.problem = problem


class RefusedError(LdpkitError):
    """The device refuses to answer: its policy, its ledger or the study's days forbid it."""

    exit_code = EXIT_REFUSED
    code = "device.refused"


class BudgetError(RefusedError):
    """Answering would exceed the device's privacy budget, for its life or for one study."""

    code = "device.budget"


class AlreadyAnsweredError(RefusedError):
    """The device has answered this question before."""

    code = "device.already_answered"


class LedgerError(LdpkitError):
    """The ledger cannot be read or written; nothing was answered."""

    code = "ledger.unusable"


class TransferError(LdpkitError):
    """A server could not be reached or refused a request."""

    exit_code = EXIT_NETWORK
    code = "transfer.failed"


class RandomnessError(LdpkitError):
    """The source of random bytes is missing, broken or not secret; no answer was made with it."""

    code = "random.unusable"


class InputError(LdpkitError):
    """A file, option, argument or setting that a person gave is wrong."""

    exit_code = EXIT_REFUSED
    code = "input.invalid"


class UsageError(InputError):
    """A command line is wrong, whatever its files contain: an option's value, or options together."""

    exit_code = EXIT_USAGE
    code = "usage.invalid"


class MissingExtraError(LdpkitError):
    """A part of ldpkit needs packages that are not installed; the message has the command that installs them.

    Args:
        extra: the extra of ldpkit or ldp-client to install, such as "inference"; "": ldpkit itself.
        module: the module that was not found.

    Attributes:
        extra: as given.
    """

    code = "extra.missing"

    def __init__(self, extra: str, module: str) -> None:
        from ldp_client.words.text import say

        # All other extras belong to ldpkit.
        package = "ldp-client" if extra in ("oblivious", "secure-sum") else "ldpkit"
        wanted = f"'{package}[{extra}]'" if extra else package
        super().__init__(say("core.missing_extra", module=module, package=wanted))
        self.extra = extra
