BEGIN TRANSACTION;
CREATE TABLE answered (
  origin TEXT NOT NULL, study TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
INSERT INTO "answered" VALUES('','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147');
INSERT INTO "answered" VALUES('','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67');
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon TEXT NOT NULL);
INSERT INTO "budget" VALUES(1,'8');
CREATE TABLE consents (
  origin TEXT NOT NULL, study TEXT NOT NULL, digest TEXT NOT NULL, day TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
INSERT INTO "consents" VALUES('','padded','b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','2026-11-30');
INSERT INTO "consents" VALUES('','rounds','0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','2026-11-30');
CREATE TABLE permanent (
  origin TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, noise TEXT NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY (origin, study, question)) WITHOUT ROWID;
INSERT INTO "permanent" VALUES('','rounds','ever','eabc5bdbe7520dba37f3b0df4bbb554287f7631361d51e60848f9f8140d6e1e3',X'016E213E59A13486F3');
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, nodes TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  channel TEXT NOT NULL, state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL,
  body TEXT NOT NULL, ticket TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "reports" VALUES('0c5efca2c5f78076adfa22277ed0a036','47a87862669c7cbf4e7dda44c5e3a8b6','','','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','','','queued',0,'58d515d06df1b7a76d8704bac8862b2f51613f2b9cd3ff121ac7eb3a8fee7b0a','{"digest":"b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147","format":"ldpkit.report/1","id":"0c5efca2c5f78076adfa22277ed0a036","payloads":{"occupation":"Ag=="},"public":{"region":"north"},"study":"padded","version":1}        ','');
INSERT INTO "reports" VALUES('f9c34115183bc41937681711d333a429','8468391ad4f95b38dced8f0a65448816','','','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','','','queued',0,'38e6cedc22b794a76593031ed736175700f2a1397cd99366fc8f6c4c3045dfd1','{"digest":"0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67","format":"ldpkit.report/1","id":"f9c34115183bc41937681711d333a429","payloads":{"ever":"AW4hPlmhNIbz0w==","hours":"AAlq7g=="},"study":"rounds","version":1}','');
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO "seal" VALUES(1,'682fb9e83e4799aaa36f773a2b2495342262b7d248dbd0a5be76d46f3df9b437');
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
PRAGMA user_version = 11;
