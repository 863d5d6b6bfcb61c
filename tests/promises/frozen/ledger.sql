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
INSERT INTO "permanent" VALUES('','rounds','ever','eabc5bdbe7520dba37f3b0df4bbb554287f7631361d51e60848f9f8140d6e1e3',X'011FE00602E441924B');
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  invitation TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "reports" VALUES('318de4d285c45ed875c2caea7d7d60e5','b061612e67e2049a40c13744e8fee1a7','','','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','','queued',0,'2a868148e2bade51d75729e1949497f28b501e87b96f76834d4a4882690b289f','{"digest":"b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147","format":"ldpkit.report/1","id":"318de4d285c45ed875c2caea7d7d60e5","payloads":{"hours":"/8L5xA=="},"public":{"region":"north"},"study":"padded","version":1}         ','');
INSERT INTO "reports" VALUES('7fa3338123b21297794f13eea37154ca','dd740fcb4d3b39e54a314200bf140556','','','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','','queued',0,'8a2134ba80bd5f91d0281ebdea19f9d97c0b2726383f275fe97b835a2b4edfdc','{"digest":"0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67","format":"ldpkit.report/1","id":"7fa3338123b21297794f13eea37154ca","payloads":{"ever":"AR/gBgLkQZJLyg==","hours":"AAn5Sw=="},"study":"rounds","version":1}','');
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO "seal" VALUES(1,'821f1cdc6dc62c07e548e4c1abf9ce5d283f6526cf1be8f84f8d4add667fe853');
CREATE TABLE signed (document TEXT PRIMARY KEY, keys TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE spent (
  origin TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL,
  epsilon TEXT NOT NULL, delta TEXT NOT NULL, PRIMARY KEY (origin, study, question)) WITHOUT ROWID;
INSERT INTO "spent" VALUES('','padded','hours',1,'1','0');
INSERT INTO "spent" VALUES('','padded','occupation',1,'0','0');
INSERT INTO "spent" VALUES('','rounds','ever',1,'1','0');
INSERT INTO "spent" VALUES('','rounds','hours',1,'1','0');
CREATE TABLE tokens (
  report TEXT PRIMARY KEY, key INTEGER NOT NULL, turned INTEGER NOT NULL, nonce TEXT NOT NULL,
  salt TEXT NOT NULL, factor TEXT NOT NULL, token TEXT NOT NULL) WITHOUT ROWID;
COMMIT;
PRAGMA user_version = 9;
