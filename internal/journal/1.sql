-- Version 1 of a journal. Times are UTC, and '' when there is none.

-- The last epoch of each key that this agent knew, and its holder; '?' when only a release
-- tells of it. The line says everything once more: they are compared whenever the file is
-- opened, so that a damaged epoch is not read.
CREATE TABLE known (
  pool    TEXT    NOT NULL,
  address TEXT    NOT NULL, -- '' for the forwarding of a NIC
  domain  TEXT    NOT NULL,
  epoch   INTEGER NOT NULL CHECK (epoch > 0),
  holder  TEXT    NOT NULL, -- '' for none
  line    TEXT    NOT NULL CHECK (line = pool || '/' || address || '@' || domain || ' ' || holder || ' ' || epoch),
  PRIMARY KEY (pool, address, domain)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER known_rise BEFORE UPDATE ON known
WHEN NOT (NEW.epoch > OLD.epoch OR NEW.epoch = OLD.epoch AND OLD.holder = '?' AND NEW.holder <> '?')
BEGIN SELECT RAISE(ABORT, 'an epoch that was known is never lowered'); END;
CREATE TRIGGER known_keep BEFORE UPDATE OF pool, address, domain ON known
BEGIN SELECT RAISE(ABORT, 'a key keeps its epoch'); END;
CREATE TRIGGER known_stay BEFORE DELETE ON known
BEGIN SELECT RAISE(ABORT, 'an epoch that was known is never forgotten'); END;
CREATE TRIGGER known_once BEFORE INSERT ON known
WHEN EXISTS (SELECT 1 FROM known WHERE pool = NEW.pool AND address = NEW.address AND domain = NEW.domain)
BEGIN SELECT RAISE(ABORT, 'a key is known once'); END;

-- What this node asks of providers.
CREATE TABLE actions (
  id           TEXT    PRIMARY KEY,
  verb         TEXT    NOT NULL,
  pool         TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  domain       TEXT    NOT NULL,
  epoch        INTEGER NOT NULL CHECK (epoch > 0),
  holder       TEXT    NOT NULL,
  provider     TEXT    NOT NULL,
  provider_ref TEXT    NOT NULL,
  nic          TEXT    NOT NULL,
  reassign     INTEGER NOT NULL CHECK (reassign IN (0, 1)),
  repair       INTEGER NOT NULL CHECK (repair >= 0),
  undoes       TEXT    NOT NULL, -- the id of another, or ''

  state        TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'running', 'succeeded', 'failed', 'skipped', 'rolledBack')),
  attempts     INTEGER NOT NULL CHECK (attempts >= 0),
  unanswered   INTEGER NOT NULL CHECK (unanswered BETWEEN 0 AND attempts),
  not_before   TEXT    NOT NULL CHECK (not_before = '' OR state IN ('approved', 'failed')),
  deadline     TEXT    NOT NULL CHECK ((deadline <> '') = (state = 'running')),
  reason       TEXT    NOT NULL,
  code         TEXT    NOT NULL,
  approver     TEXT    NOT NULL,
  superseded   INTEGER NOT NULL CHECK (superseded IN (0, 1)),
  created      TEXT    NOT NULL,
  updated      TEXT    NOT NULL,
  written      INTEGER NOT NULL -- rises with every write of any row
) STRICT;
CREATE UNIQUE INDEX actions_written ON actions (written);

-- What an action is never changes; what is over stays so.
CREATE TRIGGER actions_begin BEFORE INSERT ON actions WHEN NEW.state <> 'pending' OR NEW.attempts <> 0
BEGIN SELECT RAISE(ABORT, 'an action begins as pending'); END;
CREATE TRIGGER actions_once BEFORE INSERT ON actions WHEN EXISTS (SELECT 1 FROM actions WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an action is planned once'); END;
CREATE TRIGGER actions_keep
BEFORE UPDATE OF id, verb, pool, address, domain, epoch, holder, provider, provider_ref, nic, reassign, repair, undoes, created ON actions
BEGIN SELECT RAISE(ABORT, 'an action stays what it is'); END;
CREATE TRIGGER actions_life BEFORE UPDATE ON actions WHEN NOT CASE OLD.state
  WHEN 'pending'   THEN NEW.state IN ('pending', 'approved', 'skipped')
  WHEN 'approved'  THEN NEW.state IN ('approved', 'running', 'skipped')
  WHEN 'running'   THEN NEW.state IN ('approved', 'succeeded', 'failed', 'skipped')
  WHEN 'failed'    THEN NEW.state IN ('failed', 'running', 'skipped')
  WHEN 'succeeded' THEN NEW.state = 'rolledBack'
  ELSE 0 END
BEGIN SELECT RAISE(ABORT, 'an action does not become that from what it is'); END;
CREATE TRIGGER actions_stay BEFORE DELETE ON actions
BEGIN SELECT RAISE(ABORT, 'an action is never forgotten'); END;

-- The outbox: the releases that are due.
CREATE TABLE markers (
  id           TEXT    PRIMARY KEY,
  verb         TEXT    NOT NULL,
  pool         TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  domain       TEXT    NOT NULL,
  epoch        INTEGER NOT NULL CHECK (epoch > 0),
  holder       TEXT    NOT NULL,
  provider     TEXT    NOT NULL,
  provider_ref TEXT    NOT NULL,
  nic          TEXT    NOT NULL,
  repair       INTEGER NOT NULL CHECK (repair >= 0)
) STRICT, WITHOUT ROWID;

-- Every change of an action, for people.
CREATE TABLE events (
  n          INTEGER PRIMARY KEY AUTOINCREMENT,
  at         TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  from_state TEXT    NOT NULL, -- '' for a new one
  to_state   TEXT    NOT NULL,
  attempt    INTEGER NOT NULL,
  detail     TEXT    NOT NULL
) STRICT;
CREATE INDEX events_id ON events (id);

CREATE TRIGGER events_keep BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'what has happened does not change'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'what has happened is not forgotten'); END;
