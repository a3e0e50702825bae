-- Where a lane stands in a partition that left records of it behind: those from next to last, which the position of the partition
-- has passed. In Weir a lane is an organization. The row moves in the transaction of the effect, under the epoch of the partition, and goes
-- when nothing is left. halted is why nobody comes to the records any more: they are not in the log. It stays so until a person clears it.
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
    halted       text,
    PRIMARY KEY (organization, group_name, topic, partition)
) WITH (fillfactor = 50);
ALTER TABLE bus_deferred ENABLE ROW LEVEL SECURITY;
ALTER TABLE bus_deferred FORCE ROW LEVEL SECURITY;
CREATE POLICY bus_deferred_organization ON bus_deferred
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
