-- How far each consumer has applied each partition. The row moves in the transaction of the effect; epoch fences members
-- that lost the partition.
CREATE TABLE bus_positions (
    group_name  text        NOT NULL,
    topic       text        NOT NULL,
    partition   integer     NOT NULL,
    next        bigint      NOT NULL CHECK (next >= 0),
    epoch       bigint      NOT NULL,
    owner       text        NOT NULL,
    halted      text,   -- why the partition was stopped, until a person clears it
    updated_at  timestamptz NOT NULL DEFAULT now(),
    topic_id    uuid,   -- a recreated topic has another one; null: not known yet, or cleared by a person
    last_offset bigint, -- of the last record passed, as its log had it: a log that was cut and has grown since has another
    last_time   timestamptz,
    last_sum    bigint,
    PRIMARY KEY (group_name, topic, partition)
) WITH (fillfactor = 50);

-- Records that can't be applied, as they were in the log. If a person asks for a replay, the consumer that has their
-- partition applies them, and the row goes with the effect.
CREATE TABLE bus_parked (
    organization    text        NOT NULL CHECK (organization <> ''), -- the record's ce_organization, '*' without one
    group_name      text        NOT NULL,
    topic           text        NOT NULL,
    partition       integer     NOT NULL,
    record_offset   bigint      NOT NULL,
    record_time     timestamptz NOT NULL,
    key             bytea,
    value           bytea,
    header_names    text[]      NOT NULL,
    header_values   bytea[]     NOT NULL,
    reason          text        NOT NULL,
    parked_at       timestamptz NOT NULL DEFAULT now(),
    attempts        integer     NOT NULL DEFAULT 1, -- how often it failed
    failed_at       timestamptz NOT NULL DEFAULT now(),
    replay_asked_at timestamptz,
    PRIMARY KEY (organization, group_name, topic, partition, record_offset)
);
CREATE INDEX bus_parked_replay ON bus_parked (group_name, topic, partition) WHERE replay_asked_at IS NOT NULL;
ALTER TABLE bus_parked ENABLE ROW LEVEL SECURITY;
ALTER TABLE bus_parked FORCE ROW LEVEL SECURITY;
CREATE POLICY bus_parked_organization ON bus_parked
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

-- Records of a lane, which in Weir is an organization, that the position of the partition has passed without applying
-- them: those from next to last. The row moves in the transaction of the effect, under the epoch of the partition, and goes
-- when nothing is left.
CREATE TABLE bus_deferred (
    organization text        NOT NULL CHECK (organization <> ''),
    group_name   text        NOT NULL,
    topic        text        NOT NULL,
    partition    integer     NOT NULL,
    topic_id     uuid        NOT NULL,
    next         bigint      NOT NULL CHECK (next >= 0),
    last         bigint      NOT NULL CHECK (last >= next),
    records      bigint      NOT NULL,
    bytes        bigint      NOT NULL,
    since        timestamptz NOT NULL,
    halted       text, -- the records have left the log; why, until a person clears it
    PRIMARY KEY (organization, group_name, topic, partition)
) WITH (fillfactor = 50);
ALTER TABLE bus_deferred ENABLE ROW LEVEL SECURITY;
ALTER TABLE bus_deferred FORCE ROW LEVEL SECURITY;
CREATE POLICY bus_deferred_organization ON bus_deferred
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

-- How far each outbox is published, and which process may publish it until when.
CREATE TABLE bus_relays (
    name        text        PRIMARY KEY,
    position    bigint      NOT NULL DEFAULT 0,
    epoch       bigint      NOT NULL DEFAULT 0,
    owner       text        NOT NULL DEFAULT '',
    expires_at  timestamptz NOT NULL DEFAULT '-infinity',
    marks       jsonb       NOT NULL DEFAULT '[]', -- records that it published, newest last, compared with the log (ADR 7)
    lost_at     timestamptz,                       -- when it last found that a log had lost something
    lost        text        NOT NULL DEFAULT '',   -- what
    republished bigint      NOT NULL DEFAULT 0     -- messages that it has published again, in all
) WITH (fillfactor = 50);

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
