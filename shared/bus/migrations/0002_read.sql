-- The last record that a process of the module has read of each partition of a topic that it keeps in memory: the next start
-- compares it with the log (ADR 7).
CREATE TABLE bus_read (
    topic       text        NOT NULL,
    partition   integer     NOT NULL,
    topic_id    uuid        NOT NULL,
    last_offset bigint      NOT NULL,
    last_sum    bigint      NOT NULL,
    marked_at   timestamptz NOT NULL, -- when the newest marker up to there was published
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);
