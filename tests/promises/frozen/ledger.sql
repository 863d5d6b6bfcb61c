BEGIN TRANSACTION;
CREATE TABLE answered (
  origin TEXT NOT NULL, study TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
INSERT INTO "answered" VALUES('','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147');
INSERT INTO "answered" VALUES('','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67');
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon TEXT NOT NULL);
INSERT INTO "budget" VALUES(1,'8');
CREATE TABLE channels (
  document TEXT PRIMARY KEY, channel TEXT NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
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
INSERT INTO "permanent" VALUES('','rounds','ever','eabc5bdbe7520dba37f3b0df4bbb554287f7631361d51e60848f9f8140d6e1e3',X'01CEA1C4AA471640A3');
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  invitation TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "reports" VALUES('059d5540ada55f8aae666ca22e50c5a4','553f732e6ed7796474403527df02d162','','','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','','queued',0,'b66058f5d890ac942b4f714c6fe8d3c2839e8c5f4e3fbdb7a9d221ae03d00481','{"digest":"0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67","format":"ldpkit.report/1","id":"059d5540ada55f8aae666ca22e50c5a4","payloads":{"ever":"Ac6hxKpHFkCj4A==","hours":"AC71Ug=="},"study":"rounds","version":1}','');
INSERT INTO "reports" VALUES('b152f520a25fcd43d102bce840ecfbad','cd0fa42471aecab8966d9c4e5844d1ae','','','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','','queued',0,'c8604d07098954d98cd6381812a8e546892556450ca04119de789ddd3385ec25','{"digest":"b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147","format":"ldpkit.report/1","id":"b152f520a25fcd43d102bce840ecfbad","payloads":{"occupation":"AQ=="},"public":{"region":"north"},"study":"padded","version":1}        ','');
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO "seal" VALUES(1,'911e09d5645198b758fbc8cdfe03356e8ff241c4d1aaa8e43ea2131367b38d33');
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
PRAGMA user_version = 8;
