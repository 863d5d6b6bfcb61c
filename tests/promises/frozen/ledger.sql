BEGIN TRANSACTION;
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon TEXT NOT NULL);
INSERT INTO "budget" VALUES(1,'8');
CREATE TABLE channels (
  document TEXT PRIMARY KEY, channel TEXT NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE consents (
  study TEXT NOT NULL, publisher TEXT NOT NULL, digest TEXT NOT NULL, day TEXT NOT NULL,
  PRIMARY KEY (study, publisher)) WITHOUT ROWID;
INSERT INTO "consents" VALUES('padded','','b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','2026-11-29');
INSERT INTO "consents" VALUES('rounds','','0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','2026-11-29');
CREATE TABLE permanent (
  study TEXT NOT NULL, publisher TEXT NOT NULL, question TEXT NOT NULL, fingerprint TEXT NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY (study, publisher, question)) WITHOUT ROWID;
INSERT INTO "permanent" VALUES('rounds','','ever','d650f4e99711b5b44ec22a2a3671d090a57993ebbd05bcc3e581c1b22431bd9f:43587d7262b4e3bcccb840b3b8ec35833fef7a97ad6da6a7980bbe45aa3df058',X'011DDD6B3C4C4421BE');
CREATE TABLE publishers (
  document TEXT NOT NULL, collector TEXT NOT NULL, identity TEXT NOT NULL,
  PRIMARY KEY (document, collector)) WITHOUT ROWID;
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, publisher TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  invitation TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "reports" VALUES('3195f337e63ab164a2d9226b69bcfe6d','7b9fb01d383bae589769102610631768','','','rounds',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','','queued',0,'9b6f832d102aa42539a96703f42088ae00836b06df36bf19eaa33a7aa80a7d7c','{"digest":"0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67","format":"ldpkit.report/1","id":"3195f337e63ab164a2d9226b69bcfe6d","payloads":{"ever":"AR3dazxMRCG+Cw==","hours":"AB/lVw=="},"study":"rounds","version":1}','');
INSERT INTO "reports" VALUES('8f1e8e05d91adef16e831931aa0e04bb','dae9c7d63d832a6c5bca965e55f6d96c','','','padded',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','','queued',0,'ce0fe3317fa448a4827b8c3447ba5f1e0a858a8f65591bc81fd9fe1dc88145c7','{"digest":"b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147","format":"ldpkit.report/1","id":"8f1e8e05d91adef16e831931aa0e04bb","payloads":{"occupation":"Ag=="},"public":{"region":"north"},"study":"padded","version":1}        ','');
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO "seal" VALUES(1,'212f6dbb2abdd2319b464c99af57f57338a6d30c7f2edaf5ff0734e26818d0eb');
CREATE TABLE seen (
  study TEXT NOT NULL, publisher TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
  key TEXT NOT NULL, PRIMARY KEY (study, publisher)) WITHOUT ROWID;
INSERT INTO "seen" VALUES('padded','',1,'b5f38d11588ade81b940aa8c9fbd9a12c8724361b9196651322679b796c40147','');
INSERT INTO "seen" VALUES('rounds','',1,'0272e1a67f529c03c84fd3bb6b23ea02169ddfe6037f5a112b170fe3cdba1c67','');
CREATE TABLE spent (
  study TEXT NOT NULL, publisher TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL,
  words TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
  PRIMARY KEY (study, publisher, question)) WITHOUT ROWID;
INSERT INTO "spent" VALUES('padded','','hours',1,'+136a56ec69fa769700d5a260131079dace3b61a0c202947e948e9c92063f44fc =404314b1f4bd8fa2ff42a84cd851ddc011c76fb64e12dfe3748101b03ed8ce7c =ad22a4b7f04f5d22e2da751426d0a05fd410a3ff4fb0167327595c41f8221a8f d748fb6420234fb4b697afb90c4b698bb18bf3c509ed1b151bac1c499c46d7af','0','0');
INSERT INTO "spent" VALUES('padded','','occupation',1,'+136a56ec69fa769700d5a260131079dace3b61a0c202947e948e9c92063f44fc 972faa3a994c6cb11f7d8755593ce9d19d520b68d996d24032889d694f37ca84 =3d7f19555f1d2f0722c73132767e3d7c9bca45d475f300643d65cf64e1d2d617 =ad22a4b7f04f5d22e2da751426d0a05fd410a3ff4fb0167327595c41f8221a8f','1','0');
INSERT INTO "spent" VALUES('rounds','','ever',1,'=63212655f2e25a8f89eeb6653853cece8901e24c4a4c1dee70e53b68bad3e19c =ad22a4b7f04f5d22e2da751426d0a05fd410a3ff4fb0167327595c41f8221a8f d650f4e99711b5b44ec22a2a3671d090a57993ebbd05bcc3e581c1b22431bd9f','1','0');
INSERT INTO "spent" VALUES('rounds','','hours',1,'=404314b1f4bd8fa2ff42a84cd851ddc011c76fb64e12dfe3748101b03ed8ce7c =ad22a4b7f04f5d22e2da751426d0a05fd410a3ff4fb0167327595c41f8221a8f d748fb6420234fb4b697afb90c4b698bb18bf3c509ed1b151bac1c499c46d7af','1','0');
CREATE TABLE tokens (
  report TEXT PRIMARY KEY, key INTEGER NOT NULL, turned INTEGER NOT NULL, nonce TEXT NOT NULL,
  salt TEXT NOT NULL, factor TEXT NOT NULL, token TEXT NOT NULL) WITHOUT ROWID;
COMMIT;
PRAGMA user_version = 7;
