"""A device: answers a study once, remembers that it did, and sends the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ldp_client.core.randomness import urandom
from ldp_client.device import outbox, policy
from ldp_client.device.arguments import checked_url, folder_of, listed_texts, origin_of
from ldp_client.device.ledger import Ledger
from ldp_client.device.outbox import Queued
from ldp_client.device.policy import Policy
from ldp_client.device.transport import Direct
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from ldp_client.device.sending import Flushed
    from ldp_client.device.transport import Transport
    from ldp_client.documents.signed import SignedStudy
    from ldp_client.documents.study import Study


class Device:
    """One person's device. Decimals are strings.

    Args:
        folder: the folder of ledger and outbox; a relative path is another device in each working folder.
        max_epsilon: the privacy budget for the device's life, over all studies, in nats. The ledger keeps the
            smallest value that was given; a larger value counts only with `raise_budget`.
        collector: base URL, needed to fetch and to flush; https, or http on this machine. A study is known by
            this URL's scheme, host and port and by the study's id.
        max_epsilon_per_study: the privacy budget for each study (None: no further limit).
        max_epsilon_per_collector: the privacy budget for all studies of one collector (None: no further
            limit). It keeps one collector's many small studies from using up the whole budget.
        max_delta: the largest sum of delta over all studies.
        allowed_hosts: the only hosts to talk to (None: any).
        signing_keys: PEM texts or files of public keys, the newest last. Each study must be signed with a key
            in this list (None: no signature is needed).
        require_consent: False only if consent was obtained and is recorded elsewhere.
        nodes: the nodes of secure sums that the owner trusts not to collude, each with its keys as a study
            names it, https://host#KEYS. All nodes of a study must be in this list. Without it no secure sum
            is answered.
        known_digests: digests of studies that were published where all can see them. Any other study is
            refused, as it may have been made for this person alone (None: any).
        raise_budget: let the ledger keep a larger max_epsilon from now on.
        formerly: base URLs at which this collector was before it moved. The ledger moves its rows from there:
            answers that the collector got there count as given here.
        transport: how all requests leave: `Direct()`, the default, or `Oblivious(relay, key)`.

    Attributes:
        policy: what the owner allows, from these arguments.
        collector: its base URL, "" for none.
        require_consent: as given.
        transport: as given.
        ledger: past answers, their cost, and unsent reports.

    Raises:
        InputError: an argument is wrong.
        RefusedError: the collector is not allowed.
        LedgerError: the ledger cannot be used.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        max_epsilon: str | float,
        collector: str | None = None,
        *,
        max_epsilon_per_study: str | float | None = None,
        max_epsilon_per_collector: str | float | None = None,
        max_delta: str | float = "0.0001",
        allowed_hosts: Sequence[str] | None = None,
        signing_keys: Sequence[str | os.PathLike[str]] | None = None,
        require_consent: bool = True,
        nodes: Sequence[str] = (),
        known_digests: Sequence[str] | None = None,
        raise_budget: bool = False,
        formerly: Sequence[str] = (),
        transport: Transport | None = None,
    ) -> None:
        self.policy = Policy(
            max_epsilon,
            max_epsilon_per_study,
            max_epsilon_per_collector,
            max_delta,
            allowed_hosts,
            signing_keys,
            nodes,
            known_digests,
        )
        self.collector = "" if collector is None else self.policy.base_url(collector)
        self.transport = transport or Direct()
        if self.transport.relay:
            self.policy.base_url(self.transport.relay)
        self.require_consent = require_consent
        earlier = [origin_of(checked_url(url)[0]) for url in listed_texts("formerly", formerly)]
        self.ledger = Ledger(folder_of(folder), origin_of(self.collector))
        if self.collector:
            self.ledger.adopt(earlier)
        self.policy.epsilon = self.ledger.keep_budget(str(max_epsilon), raise_budget)
        # Digests of studies that a pinned key signed.
        self._signed: set[str] = set()
        # An audit replaces this with bytes that it knows.
        self._random = urandom

    def __repr__(self) -> str:
        folder, where = os.path.dirname(self.ledger.path), f", collector={self.collector!r}"
        most = f"max_epsilon={float(self.policy.epsilon):g}"
        return f"Device({folder!r}, {most}{where if self.collector else ''})"

    def fetch(self, study_id: str) -> Study:
        """Fetch the study as the collector has it now, and accept it by this device's policy.

        Args:
            study_id: the study's id.

        Returns:
            The study, which `consent` and `answer` take.

        Raises:
            TransferError: the collector cannot be reached.
            InputError: the collector does not have the study.
            StudyError: the collector's answer is not a study.
            RefusedError: as in `accept`, or the collector says that the study was closed or deleted.
        """
        from ldp_client.device.requests import fetch_document

        collector = self._needed_collector()
        is_signed = bool(self.policy.keys)
        return self.accept(fetch_document(self.transport, collector, study_id, is_signed))

    def accept(self, study: Study | SignedStudy) -> Study:
        """Check a study that came from elsewhere; this object remembers that a pinned key signed it.

        Args:
            study: the study, with its signatures if keys are pinned.

        Returns:
            The study without signatures.

        Raises:
            RefusedError: the device answered a higher version, or another document of this version; its
                digest is not a published one; or, if keys are pinned, no pinned key has a valid signature.
        """
        from ldp_client.documents.signed import SignedStudy

        plain = study.study if isinstance(study, SignedStudy) else study
        policy.refuse_no_study(plain)
        self.policy.refuse_unpublished(plain)
        with self.ledger.reading() as connection:
            policy.refuse_older(connection, plain)
        if isinstance(study, SignedStudy) and self.policy.keys:
            policy.verify_study(study, self.policy.keys)
            self._signed.add(plain.digest)
        policy.refuse_unsigned(plain, self.policy.keys, self._signed)
        return plain

    def consent(self, study: Study) -> None:
        """Record durably that the person agrees to answer exactly this study, in this version.

        Show its digest to participants who want to compare it with others': a separate document for each
        person would reveal whose report is whose.

        Args:
            study: the study that the person was shown.

        Raises:
            RefusedError: keys are pinned, and this object did not accept the study under any of them.
            LedgerError: the ledger cannot be used.
        """
        policy.refuse_no_study(study)
        policy.refuse_unsigned(study, self.policy.keys, self._signed)
        with self.ledger.writing() as connection:
            policy.note_consent(connection, study, self.ledger.origin, outbox.today())

    def answer(
        self,
        study: Study,
        answers: dict[str, Any],
        ticket: str = "",
        *,
        public: dict[str, Any] | None = None,
    ) -> str:
        """Perturb every answer once, store spend and report durably, and queue the report.

        The true answers are not stored.

        Args:
            study: the study, as `fetch` or `accept` returned it.
            answers: {question id: answer}, for each question of the study.
            ticket: the code that the operator of an invited study handed out. It travels with the report,
                not in it. In a study with tokens, only their issuer gets it.
            public: {public field id: value}, which leaves in clear.

        Returns:
            The report's id.

        Raises:
            AnswerError: an answer does not fit; no noise was drawn.
            AlreadyAnsweredError: the device has answered a question before.
            BudgetError: the answers would exceed the budget. The charge is the larger of the study's epsilon
                and delta and of those recomputed from the integers that draw the noise.
            RefusedError: the policy, the study's days or a missing consent forbid it; a value would leave
                without noise that had noise before, or is not given as public; or 500 reports wait.
            LedgerError: the ledger cannot be used; nothing was answered.
        """
        from ldp_client.answering import perturb_answers
        from ldp_client.device import budget

        ticket = outbox.plain_ticket(ticket)
        policy.refuse_no_study(study)
        terms, origin = budget.Terms(study), self.ledger.origin
        with self.ledger.writing() as connection:
            # 1. Refuse what the owner's policy, the study's version or a missing consent forbids.
            self.policy.refuse_unpublished(study)
            policy.refuse_unsigned(study, self.policy.keys, self._signed)
            policy.refuse_nameless(connection, study, origin)
            policy.refuse_older(connection, study)
            self.policy.refuse_places(study, self.collector, self.transport.relay)
            if self.require_consent is not False:
                policy.refuse_without_consent(connection, study)
            # 2. Refuse repeats, then other days: a report that was answered in time is sent on any day.
            budget.refuse_second_answers(connection, terms)
            policy.refuse_asked_behind_noise(connection, study)
            terms.refuse_outside_days(outbox.today())
            outbox.refuse_full(connection)
            # 3. Refuse to exceed the budget. Permanent answers that are repeated were paid for before.
            values = policy.with_public(study, answers, public)
            remembering = budget.recall(connection, terms)
            paid = [name for name in remembering if remembering[name].answer]
            fresh = [name for name in terms.mechanisms if name not in paid]
            budget.refuse_overspending(connection, terms, fresh, self.policy)
            # 4. Draw the noise.
            mechanisms = {**terms.mechanisms, **remembering}
            if study.protocol is not None:
                from ldp_client.device.shares import body_of
                from ldp_client.secure_sum import sealed_shares

                report, shares = sealed_shares(study, mechanisms, values)
                body, answered = body_of(shares), set(mechanisms)
            else:
                report = perturb_answers(study, mechanisms, values, self._random)
                body, answered = report.to_json(), set(report.payloads)
            queued = Queued.of(study, report, body, ticket, origin)
            # 5. Write spends, permanent answers and report in the ledger's one transaction.
            budget.write_spends(connection, terms, origin, fresh, answered)
            budget.remember(connection, terms, origin, remembering, fresh)
            policy.note_answered(connection, study, origin)
            outbox.enqueue(connection, queued, self.transport.most_report_bytes)
            return queued.report_id

    def give_ticket(self, study_id: str, ticket: str) -> None:
        """Give a waiting report another ticket, as the first was not accepted.

        A ticket admits one report. If several versions' reports wait, a report without a ticket
        gets it, else the latest version's report. Nothing changes if a report has it already.

        Args:
            study_id: the study's id.
            ticket: the new ticket; "" removes the tickets of all waiting reports.

        Raises:
            InputError: the device does not know the study.
        """
        ticket = outbox.plain_ticket(ticket)
        with self.ledger.writing() as connection:
            policy.refuse_unknown(connection, study_id)
            outbox.give_ticket(connection, study_id, ticket)

    def flush(self, attempts: int = 5, now: bool = False) -> Flushed:
        """Send due reports to this device's collector, and request the deletion of withdrawn reports.

        A report leaves byte for byte as it was written. A report that cannot be sent stays queued. So does a
        report for another collector, or for nodes that are not allowed. It is counted, with the reason.
        A flush begins no request after 5 minutes.

        Args:
            attempts: how often each request is tried.
            now: request deletions at once, even of reports that left together with others. They then reveal
                whose report it was.

        Returns:
            How many reports were sent, wait or were refused, and how many withdrawn reports were deleted.

        Raises:
            InputError: the device has no collector.
            LedgerError: the ledger cannot be used.
        """
        # Imported only when there is something to send: answering needs no network.
        from ldp_client.device.sending import Sender

        collector = self._needed_collector()
        return Sender(self.ledger, collector, self.policy, self.transport, now).flush(attempts)

    def withdraw(self, study_id: str) -> int:
        """Wipe this device's data about its answers to a study, and request its reports' deletion.

        The budget is not refunded, and no question is answered again. Studies of that id at other collectors
        stay. Deletion takes the secret in the ledger, so a report's id alone gives no right to delete it.

        Args:
            study_id: the study's id.

        Returns:
            How many reports the collector must delete. Each flush requests it until they are gone, in the
            next window if the report left in a window.

        Raises:
            InputError: the device does not know a study of that id of its collector.
        """
        with self.ledger.writing() as connection:
            policy.refuse_unknown(connection, study_id)
            policy.forget_study(connection, study_id)
            return outbox.withdraw_reports(connection, study_id)

    @property
    def epsilon_left(self) -> Fraction:
        """Return the remaining budget, exactly, in nats."""
        return self.policy.epsilon - sum(self.ledger.spent())

    def _needed_collector(self) -> str:
        if not self.collector:
            raise InputError(
                "the device has no collector: Device(folder, max_epsilon, collector=URL)",
                code="device.no_collector",
            )
        return self.collector
