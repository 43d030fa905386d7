-- Daemons that own sessions. Each holds a lock on the file `daemons/<id>.lock` while it lives.
CREATE TABLE daemons (
    id TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    since INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE ledgers (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    root TEXT,
    opened INTEGER NOT NULL,
    active INTEGER NOT NULL,
    -- Rises with each daemon that takes the session.
    fence INTEGER NOT NULL,
    daemon TEXT
);
CREATE INDEX ledgers_by_activity ON ledgers (active);

-- In the order of writing, so that what one transaction writes for many sessions is in one place.
CREATE TABLE lines (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    ledger INTEGER NOT NULL REFERENCES ledgers (id),
    kind TEXT NOT NULL,
    line TEXT NOT NULL
);
CREATE INDEX lines_by_ledger ON lines (ledger, kind);

-- For people: what a model was told, one reminder a row.
CREATE VIEW deliveries AS
SELECT
    ledgers.session AS session,
    line ->> '$.committed.scope' AS agent,
    strftime('%Y-%m-%dT%H:%M:%fZ', (line ->> '$.committed.at') / 1000.0, 'unixepoch') AS at,
    line ->> '$.committed.record.turn' AS turn,
    line ->> '$.committed.record.phase' AS phase,
    entry.value ->> '$.type' AS type,
    entry.value ->> '$.key' AS key,
    entry.value ->> '$.body' AS body,
    line ->> '$.committed.placement' AS placement,
    line ->> '$.committed.record.id' AS record
FROM lines
JOIN ledgers ON ledgers.id = lines.ledger
JOIN json_each(line, '$.committed.record.entries') AS entry
WHERE lines.kind = 'committed'
ORDER BY lines.id, entry.id;

-- For people: the stored sessions, and who owns each.
CREATE VIEW sessions AS
SELECT
    ledgers.session AS session,
    ledgers.root AS root,
    strftime('%Y-%m-%dT%H:%M:%fZ', ledgers.opened / 1000.0, 'unixepoch') AS opened,
    strftime('%Y-%m-%dT%H:%M:%fZ', ledgers.active / 1000.0, 'unixepoch') AS active,
    (
        SELECT count(*) FROM lines WHERE lines.ledger = ledgers.id AND lines.kind = 'committed'
    ) AS commits,
    daemons.pid AS held_by
FROM ledgers
LEFT JOIN daemons ON daemons.id = ledgers.daemon
ORDER BY ledgers.active;
