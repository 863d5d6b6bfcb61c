BEGIN TRANSACTION;
CREATE TABLE answered (
  origin TEXT NOT NULL, study TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
INSERT INTO "answered" VALUES('','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147');
INSERT INTO "answered" VALUES('','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67');
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon TEXT NOT NULL);
INSERT INTO "budget" VALUES(1,'8');
CREATE TABLE channels (
  document TEXT PRIMARY KEY, channel TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE consents (
  origin TEXT NOT NULL, study TEXT NOT NULL, digest TEXT NOT NULL, day TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
INSERT INTO "consents" VALUES('','padded','b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','2026-11-29');
INSERT INTO "consents" VALUES('','rounds','0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','2026-11-29');
CREATE TABLE identities (
  document TEXT NOT NULL, collector TEXT NOT NULL, identity TEXT NOT NULL,
  PRIMARY KEY (document, collector)) WITHOUT ROWID;
CREATE TABLE permanent (
  origin TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, noise TEXT NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY (origin, study, question)) WITHOUT ROWID;
INSERT INTO "permanent" VALUES('','rounds','ever','eabc5bdbe7520dba37f3b0df4bbb554287f7631361d51e60848f9f8140d6e1e3',X'019792F1B68AFE9D34');
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  invitation TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "reports" VALUES('ce81b26423ec43a08f24a8131673690c','d3ac4c98c1f4ce9377ce279fd6f55644','','','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','','queued',0,'ef86cff86d48f38c3b4c44af0b1220ff78a3ed56d62cd067373e38efac9bc520','{"digest":"0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67","format":"ldpkit.report/1","id":"ce81b26423ec43a08f24a8131673690c","payloads":{"ever":"AZeS8baK/p00vw==","hours":"/+Gdjw=="},"study":"rounds","version":1}','');
INSERT INTO "reports" VALUES('f00928d9989e20232ab4e30abf41f62b','38521a88de142d4f81820feefec5f28c','','','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','','queued',0,'6e8ce3d1418b03e9b91e43f0d8503d33c5aaf64213dbe852e8c8fb6956ef6cbe','{"digest":"b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147","format":"ldpkit.report/1","id":"f00928d9989e20232ab4e30abf41f62b","payloads":{"occupation":"AA=="},"public":{"region":"north"},"study":"padded","version":1}        ','');
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO "seal" VALUES(1,'7784382eae27d05346d854492450aa1cbb94b206271f9a26dac6847a6c06a67e');
CREATE TABLE signed (document TEXT PRIMARY KEY, keys TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE spent (
  origin TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL,
  epsilon TEXT NOT NULL, delta TEXT NOT NULL, PRIMARY KEY (origin, study, question)) WITHOUT ROWID;
INSERT INTO "spent" VALUES('','padded','hours',1,'0','0');
INSERT INTO "spent" VALUES('','padded','occupation',1,'1','0');
INSERT INTO "spent" VALUES('','rounds','ever',1,'1','0');
INSERT INTO "spent" VALUES('','rounds','hours',1,'1','0');
CREATE TABLE tokens (
  report TEXT PRIMARY KEY, key INTEGER NOT NULL, turned INTEGER NOT NULL, nonce TEXT NOT NULL,
  salt TEXT NOT NULL, factor TEXT NOT NULL, token TEXT NOT NULL) WITHOUT ROWID;
COMMIT;
PRAGMA user_version = 9;
