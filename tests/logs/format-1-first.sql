-- A log of format 1 as its first version wrote it: six flags, and neither of the younger indexes.
-- As `sqlite3 pumphouse.db .dump` tells it; what it holds stands in tests/it/upgrade.rs.
PRAGMA application_id=1347767632;
PRAGMA user_version=1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE log (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  format INTEGER NOT NULL,
  uuid BLOB NOT NULL,
  key BLOB NOT NULL,
  created INTEGER NOT NULL
) STRICT;
INSERT INTO log VALUES(1,1,X'01a2025fe8c07a13a22845bc19ca3c02',X'166045b4b777188633123d538459aae680c1cb5429be234b22c25f59ad30c9b1',1795336169664769);
CREATE TABLE names (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  local TEXT NOT NULL,
  UNIQUE (namespace, local)
) STRICT;
INSERT INTO names VALUES(1,'https://xml-pipeline.org/ns/calculate/v1','calculate');
INSERT INTO names VALUES(2,'https://xml-pipeline.org/ns/calculate/v1','calculated');
INSERT INTO names VALUES(3,'https://xml-pipeline.org/ns/echo/v1','echo');
INSERT INTO names VALUES(4,'https://xml-pipeline.org/ns/calculate/v1','problem');
CREATE TABLE threads (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  parent INTEGER,
  fork_thread INTEGER,
  fork_seq INTEGER
) STRICT;
INSERT INTO threads VALUES(1,'sess-m84sdmat',NULL,NULL,NULL);
INSERT INTO threads VALUES(2,'sess-wegk58y8',NULL,NULL,NULL);
INSERT INTO threads VALUES(3,'sess-zsjnsjwd',NULL,NULL,NULL);
CREATE TABLE entries (
  position INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  time INTEGER NOT NULL,
  "from" TEXT NOT NULL,
  "to" TEXT,
  name INTEGER NOT NULL,
  cause_thread INTEGER,
  cause_seq INTEGER,
  reply_thread INTEGER,
  reply_seq INTEGER,
  flags INTEGER NOT NULL,
  receivers INTEGER NOT NULL,
  client_id TEXT,
  key_id INTEGER,
  digest BLOB NOT NULL,
  meta BLOB,
  body BLOB NOT NULL,
  UNIQUE (thread, seq)
) STRICT;
INSERT INTO entries VALUES(1,1,1,1795336169785880,'console','calculate',1,NULL,NULL,NULL,NULL,1,1,NULL,NULL,X'a3b110a5304e3e0216e4561f80568b86df039b4f88824904e433f50fde0f5508',NULL,X'3c63616c63756c61746520786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f63616c63756c6174652f7631223e3c65787072657373696f6e3e362a373c2f65787072657373696f6e3e3c2f63616c63756c6174653e');
INSERT INTO entries VALUES(2,1,2,1795336169786693,'calculate','console',2,1,1,1,1,2,0,NULL,NULL,X'0ab985ec8971d8d14bb9db8bbfeef43d45dee1b8c13028d757c7f3479dfae532',NULL,X'3c63616c63756c6174656420786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f63616c63756c6174652f7631223e3c76616c75653e34323c2f76616c75653e3c2f63616c63756c617465643e');
INSERT INTO entries VALUES(3,1,3,1795336169811751,'console','echo',3,NULL,NULL,NULL,NULL,33,1,'mine-1',NULL,X'843deb0fa7782ef908f0f62d79bf59450d8890ef8b295bceee2b68d1c1207e05',NULL,X'3c6563686f20786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f6563686f2f7631223e3c746578743e66697273743c2f746578743e3c2f6563686f3e');
INSERT INTO entries VALUES(4,1,4,1795336169812199,'echo','console',3,1,3,1,3,2,0,NULL,NULL,X'c10eae251f86e0496706d811a90d491158548353812314116227b9e40084a4ef',NULL,X'3c6563686f20786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f6563686f2f7631223e3c746578743e66697273743c2f746578743e3c2f6563686f3e');
INSERT INTO entries VALUES(5,2,1,1795336169821578,'console','calculate',1,NULL,NULL,NULL,NULL,1,1,NULL,NULL,X'8ab18cc958e1ad304523a3bcca65f7fb27b93ae2ff3768be756086cc18fa34ec',NULL,X'3c63616c63756c61746520786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f63616c63756c6174652f7631223e3c65787072657373696f6e3e312f303c2f65787072657373696f6e3e3c2f63616c63756c6174653e');
INSERT INTO entries VALUES(6,2,2,1795336169822470,'calculate','console',4,2,1,2,1,2,0,NULL,NULL,X'e9ceea98a4ca7efd16f4f227a847a542a274e0607130c97cd315ef6c9f680e98',NULL,X'3c70726f626c656d20786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f63616c63756c6174652f7631223e3c6469766973696f6e2d62792d7a65726f3e3c636f6c756d6e3e323c2f636f6c756d6e3e3c2f6469766973696f6e2d62792d7a65726f3e3c2f70726f626c656d3e');
INSERT INTO entries VALUES(7,3,1,1795336170851013,'console','echo',3,NULL,NULL,NULL,NULL,1,1,NULL,NULL,X'84aa7607effac0a2db1412eacffbf5e59067d401d9c08eae9086252f2e4b0faf',NULL,X'3c6563686f20786d6c6e733d2268747470733a2f2f786d6c2d706970656c696e652e6f72672f6e732f6563686f2f7631223e3c746578743e66697273743c2f746578743e3c2f6563686f3e');
CREATE TABLE commits (
  number INTEGER PRIMARY KEY,
  writer BLOB NOT NULL,
  last_position INTEGER NOT NULL,
  last_thread INTEGER NOT NULL,
  chain BLOB NOT NULL,
  marks BLOB NOT NULL
) STRICT;
INSERT INTO commits VALUES(0,X'01a2025fe8c071128e873acdc405cabe',0,0,X'fc8d31e645139474ed5554e8ad00fbb7e600faee5deb901da5aed211f8172adb',X'');
INSERT INTO commits VALUES(1,X'01a2025fe8c071128e873acdc405cabe',1,1,X'3e4d0aa4312ed2b1090bb54aa00dbfa520d937f06a6a304fbaa758d05a6b39f1',X'');
INSERT INTO commits VALUES(2,X'01a2025fe8c071128e873acdc405cabe',2,1,X'558d72cb8594672b8152aed5d00826fe918262bdeaff29956da870b777c36910',X'010963616c63756c6174650101010101');
INSERT INTO commits VALUES(3,X'01a2025fe8c071128e873acdc405cabe',3,1,X'37d62935e7a825a18202c03397422fc4c839ba672aac2ecc9c1dad55355e723d',X'');
INSERT INTO commits VALUES(4,X'01a2025fe8c071128e873acdc405cabe',4,1,X'4171c80c2e912e823fbab5feb3528782757df5894c50d240c6874a38498831ad',X'01046563686f0101010301');
INSERT INTO commits VALUES(5,X'01a2025fe8c071128e873acdc405cabe',5,2,X'7f95bc34385f4f7d7cafd81a1406da235f8270f37ef7fea97a3486cc3bbeedf1',X'');
INSERT INTO commits VALUES(6,X'01a2025fe8c071128e873acdc405cabe',6,2,X'87f35a04dcf6041814c249775b1bd326a411d44ca2b1209987d0c72808b470e0',X'010963616c63756c6174650101020101');
INSERT INTO commits VALUES(7,X'01a2025fe8c071128e873acdc405cabe',7,3,X'a2b05443a95da8bac4b411c173d96b5290105596d0d32ef7ca9946f7370559bb',X'');
CREATE UNIQUE INDEX entries_client_id ON entries ("from", client_id)
  WHERE client_id IS NOT NULL AND flags & 1;
CREATE TRIGGER log_no_update BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_replace BEFORE INSERT ON log
  WHEN EXISTS (SELECT 1 FROM log)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER names_no_update BEFORE UPDATE ON names
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER names_no_delete BEFORE DELETE ON names
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER names_no_replace BEFORE INSERT ON names
  WHEN EXISTS (SELECT 1 FROM names WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM names WHERE namespace = NEW.namespace AND local = NEW.local)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER threads_no_update BEFORE UPDATE ON threads
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER threads_no_delete BEFORE DELETE ON threads
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER threads_no_replace BEFORE INSERT ON threads
  WHEN EXISTS (SELECT 1 FROM threads WHERE number = NEW.number)
    OR EXISTS (SELECT 1 FROM threads WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER entries_no_replace BEFORE INSERT ON entries
  WHEN EXISTS (SELECT 1 FROM entries WHERE position = NEW.position)
    OR EXISTS (SELECT 1 FROM entries WHERE thread = NEW.thread AND seq = NEW.seq)
    OR NEW.client_id IS NOT NULL AND NEW.flags & 1 AND EXISTS (SELECT 1 FROM entries
      WHERE "from" = NEW."from" AND client_id = NEW.client_id AND flags & 1)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER commits_no_update BEFORE UPDATE ON commits
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER commits_no_delete BEFORE DELETE ON commits
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER commits_no_replace BEFORE INSERT ON commits
  WHEN EXISTS (SELECT 1 FROM commits WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE VIEW messages AS SELECT
  e.position,
  t.id AS thread,
  e.seq,
  strftime('%Y-%m-%dT%H:%M:%S', e.time / 1000000, 'unixepoch')
    || printf('.%06dZ', e.time % 1000000) AS time,
  e."from",
  e."to",
  n.namespace,
  n.local AS name,
  c.id || '/' || e.cause_seq AS cause,
  r.id || '/' || e.reply_seq AS reply_to,
  trim(CASE WHEN e.flags & 1 THEN 'from-identity ' ELSE '' END
    || CASE WHEN e.flags & 2 THEN 'to-identity ' ELSE '' END
    || CASE WHEN e.flags & 4 THEN 'answer-wanted ' ELSE '' END
    || CASE WHEN e.flags & 8 THEN 'refused ' ELSE '' END
    || CASE WHEN e.flags & 16 THEN 'to-given ' ELSE '' END
    || CASE WHEN e.flags & 32 THEN 'thread-given ' ELSE '' END) AS flags,
  e.receivers,
  e.client_id,
  CAST(e.meta AS TEXT) AS meta,
  CASE WHEN e.key_id IS NULL THEN CAST(e.body AS TEXT) END AS payload,
  lower(hex(e.digest)) AS digest
FROM entries e
JOIN threads t ON t.number = e.thread
JOIN names n ON n.id = e.name
LEFT JOIN threads c ON c.number = e.cause_thread
LEFT JOIN threads r ON r.number = e.reply_thread;
COMMIT;
