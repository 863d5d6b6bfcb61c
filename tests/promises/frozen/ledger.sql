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
INSERT INTO "permanent" VALUES('','rounds','ever','eabc5bdbe7520dba37f3b0df4bbb554287f7631361d51e60848f9f8140d6e1e3',X'012CF2C52F4C1082E0');
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  ticket TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "reports" VALUES('5d41baa0c2afc98f87295b489aaa2de7','db88e7a961affbcbcd7ededbc6da7a6e','','','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','','queued',0,'e5ef5830ec2649906e3492f505388dd2123fb8808eefd4aab31d57f1f36e245d','{"digest":"b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147","format":"ldpkit.report/1","id":"5d41baa0c2afc98f87295b489aaa2de7","payloads":{"hours":"ACAVyg=="},"public":{"region":"north"},"study":"padded","version":1}         ','');
INSERT INTO "reports" VALUES('a93a76dbe9bc4f4fffc787de666ab146','b67d36b3fc79e18f40eee3377315aac2','','','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','','queued',0,'7bc758aaa856602a856baaa81342694cfab8f5ae03b5196a8f8c7bc0bd2d6827','{"digest":"0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67","format":"ldpkit.report/1","id":"a93a76dbe9bc4f4fffc787de666ab146","payloads":{"ever":"ASzyxS9MEILgzg==","hours":"//sImw=="},"study":"rounds","version":1}','');
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO "seal" VALUES(1,'f350de06f8a249d3d296f3eda034990c414a21010550f2acca00c6513d144a69');
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
