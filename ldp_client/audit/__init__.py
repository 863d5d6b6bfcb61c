"""An audit of a study's privacy: exact laws, and lower bounds on ε from events among real reports.

Loaded by `ldpkit audit` and the tests only; standard library only.
"""

from ldp_client.audit.auditing import FALSE_ALARM, audit_mechanism
from ldp_client.audit.findings import Audit, Check

__all__ = ["FALSE_ALARM", "Audit", "Check", "audit_mechanism"]
