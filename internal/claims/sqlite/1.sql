-- Version 1 of a claims store.

-- The store, by a name that no other has: a revision of one means nothing in another. The
-- revision counts the transactions that have changed something.
CREATE TABLE meta (
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  store    TEXT    NOT NULL,
  revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO meta VALUES (1, lower(hex(randomblob(8))), 0);

-- Who holds what, and since which epoch (ADR 0008 §1). The line says everything once more:
-- they are compared whenever the file is opened, so that a damaged epoch is not read.
CREATE TABLE epochs (
  pool    TEXT    NOT NULL,
  address TEXT    NOT NULL, -- '' for the forwarding of a NIC
  domain  TEXT    NOT NULL,
  epoch   INTEGER NOT NULL CHECK (epoch > 0),
  holder  TEXT    NOT NULL, -- '' for none
  rev     INTEGER NOT NULL CHECK (rev > 0),
  line    TEXT    NOT NULL CHECK (line = pool || '/' || address || '@' || domain || ' ' || holder || ' ' || epoch),
  PRIMARY KEY (pool, address, domain)
) STRICT, WITHOUT ROWID;

-- No code path lowers an epoch, forgets one, or begins one anew.
CREATE TRIGGER epochs_rise BEFORE UPDATE ON epochs WHEN NEW.epoch <= OLD.epoch
BEGIN SELECT RAISE(ABORT, 'an epoch only rises'); END;
CREATE TRIGGER epochs_keep BEFORE UPDATE OF pool, address, domain ON epochs
BEGIN SELECT RAISE(ABORT, 'a key keeps its epoch'); END;
CREATE TRIGGER epochs_stay BEFORE DELETE ON epochs
BEGIN SELECT RAISE(ABORT, 'an epoch is never deleted'); END;
CREATE TRIGGER epochs_once BEFORE INSERT ON epochs
WHEN EXISTS (SELECT 1 FROM epochs WHERE pool = NEW.pool AND address = NEW.address AND domain = NEW.domain)
BEGIN SELECT RAISE(ABORT, 'a key begins once'); END;

-- Where addresses live, as somebody has said at run time. The epoch is one of its own.
CREATE TABLE homes (
  pool    TEXT    NOT NULL,
  address TEXT    NOT NULL,
  node    TEXT    NOT NULL,
  site    TEXT    NOT NULL,
  epoch   INTEGER NOT NULL CHECK (epoch > 0),
  rev     INTEGER NOT NULL CHECK (rev > 0),
  line    TEXT    NOT NULL CHECK (line = pool || '/' || address || ' ' || node || '@' || site || ' ' || epoch),
  PRIMARY KEY (pool, address)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER homes_rise BEFORE UPDATE ON homes WHEN NEW.epoch <= OLD.epoch
BEGIN SELECT RAISE(ABORT, 'an epoch only rises'); END;
CREATE TRIGGER homes_keep BEFORE UPDATE OF pool, address ON homes
BEGIN SELECT RAISE(ABORT, 'an address keeps its epoch'); END;
CREATE TRIGGER homes_stay BEFORE DELETE ON homes
BEGIN SELECT RAISE(ABORT, 'an epoch is never deleted'); END;
CREATE TRIGGER homes_once BEFORE INSERT ON homes
WHEN EXISTS (SELECT 1 FROM homes WHERE pool = NEW.pool AND address = NEW.address)
BEGIN SELECT RAISE(ABORT, 'an address begins once'); END;

-- The nodes that are drained at run time.
CREATE TABLE drains (node TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Who is alive. A node that renews counts its beat up; no clock is written down, as everyone
-- who looks judges by their own.
CREATE TABLE leases (
  node TEXT    PRIMARY KEY,
  ttl  INTEGER NOT NULL, -- nanoseconds
  beat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
