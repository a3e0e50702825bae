-- How far each consumer has applied each partition. The row moves in the transaction of the effect; epoch fences those who
-- lost the partition. halted is why a partition was stopped: it stays so until a person clears it.
CREATE TABLE bus_positions (
    group_name  text        NOT NULL,
    topic       text        NOT NULL,
    partition   integer     NOT NULL,
    next        bigint      NOT NULL CHECK (next >= 0),
    epoch       bigint      NOT NULL,
    owner       text        NOT NULL,
    halted      text,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_name, topic, partition)
) WITH (fillfactor = 50);

-- Records that cannot be applied, as they were in the log.
CREATE TABLE bus_parked (
    organization  text        NOT NULL CHECK (organization <> ''), -- as the record's ce_organization says, '*' if it says nothing
    group_name    text        NOT NULL,
    topic         text        NOT NULL,
    partition     integer     NOT NULL,
    record_offset bigint      NOT NULL,
    record_time   timestamptz NOT NULL,
    key           bytea,
    value         bytea,
    header_names  text[]      NOT NULL,
    header_values bytea[]     NOT NULL,
    reason        text        NOT NULL,
    parked_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization, group_name, topic, partition, record_offset)
);
ALTER TABLE bus_parked ENABLE ROW LEVEL SECURITY;
ALTER TABLE bus_parked FORCE ROW LEVEL SECURITY;
CREATE POLICY bus_parked_organization ON bus_parked
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

-- How far each outbox is published, and who may publish it until when.
CREATE TABLE bus_relays (
    name        text        PRIMARY KEY,
    transaction bigint      NOT NULL DEFAULT 0,
    position    bigint      NOT NULL DEFAULT 0,
    epoch       bigint      NOT NULL DEFAULT 0,
    owner       text        NOT NULL DEFAULT '',
    expires_at  timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
