"""A device: answers a study once, remembers that it did, and sends the report."""

from datetime import date
from fractions import Fraction

from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import urandom
from ldp_client.device.channels import note_channel
from ldp_client.device.in_clear import refuse_asked_behind_noise, with_public
from ldp_client.device.known_studies import (
    ANYBODY,
    Publisher,
    forget_consent,
    note_consent,
    note_publisher,
    note_version,
    refuse_no_study,
    refuse_unknown,
    refuse_without_consent,
    signer_of,
    warn_of_others,
)
from ldp_client.device.ledger import Ledger
from ldp_client.device.memory import recall, remember, wipe
from ldp_client.device.outbox import (
    Queued,
    due_of,
    enqueue,
    invite,
    plain_window,
    publishers_at,
    refuse_full,
    reports_of_others,
    withdraw_reports,
)
from ldp_client.device.policy import Policy, folder_of, plain_invitation, refuse_no_text, verify_study
from ldp_client.device.spending import refuse_others, refuse_overspending, refuse_second_answers, write_spends
from ldp_client.device.terms import terms_of
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.documents.signed import SignedStudy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Sequence
    from typing import Any, Optional

    from ldp_client.device.flushed import Flushed
    from ldp_client.device.terms import Terms
    from ldp_client.documents.study import Study
    from ldp_client.mechanisms import Mechanism


class Device:
    """One person's device. Decimals are strings.

    Args:
        folder: where ledger and outbox live; a relative one is another device in each working folder.
        max_epsilon: the privacy budget for the device's life, over all studies, in nats. The ledger keeps the
            first one; a smaller one holds for this object, a larger one only with `raise_budget`.
        collector: base URL, needed to fetch and to flush; https, or http on this machine.
        max_epsilon_per_study: the same for each study (None: no further limit).
        max_delta: the largest sum of delta over all studies.
        allowed_hosts: the only hosts to talk to (None: any).
        signing_keys: PEM texts or files of public keys, the newest last; one of them must have signed a study
            (None: nobody).
        require_consent: False only where consent was obtained and is recorded elsewhere.
        send_window: seconds, at most a week; each report waits for a time drawn evenly from it.
        nodes: the nodes of secure sums that the owner trusts not to work together, each with its keys as a
            study names it, https://host#KEYS. All nodes of a study must be among them; without any, none is
            answered.
        known_digests: digests of studies that were published where all can see them; any other study is
            refused, as it may have been made for this person alone (None: any).
        raise_budget: let the ledger keep a larger max_epsilon from now on.

    Attributes:
        policy: what the owner allows, from these arguments.
        collector: its base URL, "" for none.
        require_consent: as given.
        send_window: as given.
        ledger: what was answered, spent and not yet sent.

    Raises:
        InputError: an argument is wrong.
        RefusedError: the collector is not allowed.
        LedgerError: the ledger cannot be used.
    """

    def __init__(
        self,
        folder: "str | os.PathLike[str]",
        max_epsilon: str,
        collector: "Optional[str]" = None,
        *,
        max_epsilon_per_study: "Optional[str]" = None,
        max_delta: str = "0.0001",
        allowed_hosts: "Optional[Sequence[str]]" = None,
        signing_keys: "Optional[Sequence[str | os.PathLike[str]]]" = None,
        require_consent: bool = True,
        send_window: float = 0.0,
        nodes: "Sequence[str]" = (),
        known_digests: "Optional[Sequence[str]]" = None,
        raise_budget: bool = False,
    ) -> None:
        self.policy = Policy(
            max_epsilon, max_epsilon_per_study, max_delta, allowed_hosts, signing_keys, nodes, known_digests
        )
        self.collector = "" if collector is None else self.policy.base_url(collector)
        if not isinstance(require_consent, bool):
            raise InputError.say("device.require_consent")
        self.require_consent = require_consent
        self.send_window = plain_window(send_window)
        self.ledger = Ledger(folder_of(folder))
        self.policy.hold_to(self.ledger.keep_budget(max_epsilon, raise_budget))
        # Digests of studies of which the collector said so.
        self._closed: "set[str]" = set()
        # An audit gives bytes that it knows.
        self._random = urandom

    def fetch(self, study_id: str) -> "Study":
        """Fetch the study as the collector has it now, and accept it by this device's policy.

        This goes to the collector in the clear, also where the study states a relay: for an hour or two from
        then on nothing leaves through one.

        Args:
            study_id: the study's id.

        Returns:
            The study, which `consent` and `answer` take. Where the collector says that it is closed, `answer`
            of this device refuses it.

        Raises:
            TransferError: the collector cannot be reached, or does not have it.
            StudyError: what came is no study.
            RefusedError: as `accept` does, and where the collector says that it was deleted.
        """
        from ldp_client.device.fetch import fetch_published

        collector = self._needed_collector()
        refuse_no_text("study_id", study_id)
        found = fetch_published(self.ledger, collector, study_id, bool(self.policy.keys))
        study = self.accept(found[0])
        if study.channel is None:
            # Else it may be one for this address, to know the report by: by which answers settle it.
            with self.ledger.writing() as connection:
                note_publisher(connection, study.digest, collector, found[1])
        self._closed.discard(study.digest)
        if found[2]:
            self._closed.add(study.digest)
        return study

    def accept(self, study: "Study | SignedStudy") -> "Study":
        """Check a study that came from elsewhere, and remember its version and which keys signed it.

        Args:
            study: the study; with its signatures where keys are pinned.

        Returns:
            The study without signatures.

        Raises:
            RefusedError: its publisher had a higher version or another document of this one; its digest is
                not a published one; or, where keys are pinned, a signature is wrong or missing.
        """
        plain, key_ids = (study.study, [""]) if isinstance(study, SignedStudy) else (study, [""])
        refuse_no_study(plain)
        if isinstance(study, SignedStudy) and self.policy.keys:
            key_ids = [key.id for key in verify_study(study, self.policy.keys)]
        self.policy.refuse_unpublished(plain)
        with self.ledger.writing() as connection:
            for key_id in key_ids:
                note_version(connection, plain, self._publisher(key_id), key_id)
            signer_of(connection, plain, self.policy.keys)
        return plain

    def consent(self, study: "Study") -> None:
        """Record durably that the person agrees to answer exactly this study, to this version of it.

        Show its digest to who wants to compare it with others': a document of its own for each person would
        tell whose report is whose.

        Args:
            study: the study that the person was shown.

        Raises:
            RefusedError: where keys are pinned, the study was not accepted under one of them.
            LedgerError: the ledger cannot be used.
        """
        refuse_no_study(study)
        with self.ledger.writing() as connection:
            publisher = self._publisher_of(connection, study)
            note_consent(connection, study, publisher, date.today())

    def answer(
        self,
        study: "Study",
        answers: "dict[str, Any]",
        invitation: str = "",
        *,
        public: "Optional[dict[str, Any]]" = None,
    ) -> str:
        """Perturb every answer once, write spend and report durably, and queue the report.

        The true answers are not kept.

        Args:
            study: the study, as `fetch` or `accept` returned it.
            answers: {question id: answer}, one for each question of the study.
            invitation: what the operator of an invited study handed out; it travels beside the report, not in
                it; in a study with tokens to their issuer alone. A secure sum needs one.
            public: {public field id: value}, which leaves in clear. Where the device requires consent, they
                may stand among the answers.

        Returns:
            The report's id.

        Raises:
            AnswerError: an answer does not fit; no noise was drawn.
            AlreadyAnsweredError: the device has answered a question before.
            BudgetError: the answers would exceed the budget.
            RefusedError: the policy, the study's days or a missing consent forbid it; or what was behind
                noise before, or is not given as public, would leave in clear.
            InputError: the invitation is no text.
            LedgerError: the ledger cannot be used; nothing was answered.
        """
        invitation = plain_invitation(invitation)
        refuse_no_study(study)
        terms = terms_of(study)
        with self.ledger.writing() as connection:
            publisher = self._publisher_of(connection, study)
            self._refuse(connection, study, publisher)
            told = with_public(study, answers, public, self.require_consent)
            return self._record(connection, terms, publisher, told, invitation)

    def invite(self, study_id: str, invitation: str) -> None:
        """Give a report that waits another invitation: the first one was not taken.

        Where several versions' reports wait, one without an invitation gets it, else the latest version's: it
        lets one in. Nothing changes where a report has it already.

        Args:
            study_id: the study's id.
            invitation: the new one; "" takes away those of all that wait.

        Raises:
            InputError: the device does not know the study, or the invitation is no text.
            RefusedError: only another publisher's study of that id was answered.
        """
        invitation = plain_invitation(invitation)
        with self.ledger.writing() as connection:
            refuse_unknown(connection, study_id)
            here = self._publishers_here(connection, study_id)
            refuse_others(connection, study_id, here)
            invite(connection, study_id, here, invitation)

    def _publisher(self, key_id: str) -> Publisher:
        """The publisher: who signed with that key, else this device's collector.

        All pinned keys are one publisher's: keys change. Before one was pinned, rows named the collector.
        """
        return Publisher(key_id or self.collector, [self.collector, *self.policy.key_ids])

    def _publisher_of(self, connection: "sqlite3.Connection", study: "Study") -> Publisher:
        return self._publisher(signer_of(connection, study, self.policy.keys))

    def _publishers_here(self, connection: "sqlite3.Connection", study_id: str) -> Publisher:
        """The publisher whose study this device answers: its collector, or who signs with a pinned key."""
        at = publishers_at(connection, study_id, self.collector)
        return Publisher(self.collector, [*self.policy.key_ids, *at])

    def _refuse(self, connection: "sqlite3.Connection", study: "Study", publisher: Publisher) -> None:
        self.policy.refuse_unpublished(study)
        note_version(connection, study, publisher)
        self.policy.refuse_places(study, self.collector)
        if self.require_consent:
            refuse_without_consent(connection, study, publisher)

    def _record(
        self,
        connection: "sqlite3.Connection",
        terms: "Terms",
        publisher: Publisher,
        answers: "dict[str, Any]",
        invitation: str,
    ) -> str:
        """Everything that an answer changes, in the ledger's one transaction."""
        refuse_second_answers(connection, terms, publisher)
        refuse_asked_behind_noise(connection, terms)
        # After that: what was answered in time is then sent, whatever day it is.
        terms.refuse_outside_days(date.today())
        if terms.study.digest in self._closed:
            raise RefusedError.say("device.closed_early", study=terms.study.id)
        refuse_full(connection)
        remembering = recall(connection, terms, publisher)
        fresh = [name for name in terms.mechanisms if name not in remembering or not remembering[name].answer]
        # Also what the same collector was answered under a key that is pinned no more.
        here = self._publishers_here(connection, terms.study.id)
        refuse_overspending(connection, terms, here, fresh, self.policy.limits)
        mechanisms = {**terms.mechanisms, **remembering}
        queued, answered = self._perturb(terms, mechanisms, answers, invitation)
        write_spends(connection, terms, publisher, fresh, answered)
        remember(connection, terms, publisher, remembering)
        queued.publisher = publisher.name
        note_channel(connection, terms.study, queued.body)
        enqueue(connection, queued)
        return queued.report_id

    def _perturb(
        self, terms: "Terms", mechanisms: "dict[str, Mechanism]", answers: "dict[str, Any]", invitation: str
    ) -> "tuple[Queued, set[str]]":
        """Perturb the answers: the report as it will be sent, and the questions that it answers."""
        due = due_of(terms.study, self.send_window)
        if terms.study.route is not None:
            from ldp_client.device.shares import queued_shares

            return queued_shares(terms, answers, self.policy.nodes, invitation, due), set(mechanisms)
        report = perturb_answers(terms.study, mechanisms, answers, self._random)
        queued = Queued.of(terms.study, report, self.collector, report.to_json(), due, invitation)
        return queued, set(report.payloads)

    def flush(self, attempts: int = 5, now: bool = False) -> "Flushed":
        """Send what is due to this device's collector, and ask it to delete what was withdrawn.

        A report leaves byte for byte as it was written. What cannot be sent stays queued, and so does what
        belongs to another collector, or goes to nodes that are not allowed: it is counted, with the reason.

        Args:
            attempts: how often each request is tried.
            now: whether to send also what waits for its time; of what leaves together with others deletions
                alone, which then tell whose report it was.

        Returns:
            How many reports were sent, wait or were refused, and how many withdrawn ones were deleted.

        Raises:
            InputError: the device has no collector, or attempts is no whole number above 0.
            LedgerError: the ledger cannot be used.
        """
        if not isinstance(attempts, int) or attempts < 1:
            raise InputError.say("device.attempts")
        # Loaded when there is something to send: answering needs no network.
        from ldp_client.device.sending import Sender

        collector = self._needed_collector()
        return Sender(self.ledger, collector, self.policy).flush(attempts, now)

    def withdraw(self, study_id: str, *, everywhere: bool = False) -> int:
        """Wipe what this device holds of its answers to a study, and ask for the deletion of its reports.

        The study is that of this device's collector, or of who signs with the pinned keys. What other
        publishers have of the same id stays, and a warning (logger "ldpkit") names them. The budget is not
        refunded, and no question is answered again.

        Args:
            study_id: the study's id.
            everywhere: withdraw from every publisher's study of that id. Each report's deletion is asked for
                by a device with its collector.

        Returns:
            How many reports the collector is asked to delete, at every flush until they are gone; in the next
            window where they left in one.

        Raises:
            InputError: the device does not know the study.
            RefusedError: only another publisher's study of that id was answered.
        """
        with self.ledger.writing() as connection:
            refuse_unknown(connection, study_id)
            publisher = ANYBODY if everywhere else self._publishers_here(connection, study_id)
            refuse_others(connection, study_id, publisher, consents=True)
            forget_consent(connection, study_id, publisher)
            wipe(connection, study_id, publisher)
            count = withdraw_reports(connection, study_id, publisher)
        if others := self.answered_elsewhere(study_id):
            warn_of_others(study_id, others)
        return count

    def answered_elsewhere(self, study_id: str) -> "list[str]":
        """Name the other publishers of a study's id that have, or wait for, a report of this device.

        `withdraw` leaves these reports where they are.

        Args:
            study_id: the study's id.

        Returns:
            Base URLs of collectors, or the key of one whose collector is not known.
        """
        with self.ledger.reading() as connection:
            return reports_of_others(connection, study_id, self._publishers_here(connection, study_id))

    @property
    def epsilon_left(self) -> Fraction:
        """What is left of the budget, exactly, in nats."""
        spent = sum((spend.epsilon for spend in self.ledger.spent()), Fraction(0))
        return self.policy.limits.epsilon - spent

    def _needed_collector(self) -> str:
        if not self.collector:
            raise InputError.say("device.no_collector")
        return self.collector
