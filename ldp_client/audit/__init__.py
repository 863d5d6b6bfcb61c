"""Audit a study's privacy by exact laws, and by lower bounds on ε from events among real reports.

Only `ldpkit audit` and the tests load this package. It needs the standard library only.
"""

from ldp_client.audit.auditing import FALSE_ALARM, audit_mechanism
from ldp_client.audit.findings import Audit, Check

__all__ = ["FALSE_ALARM", "Audit", "Check", "audit_mechanism"]
