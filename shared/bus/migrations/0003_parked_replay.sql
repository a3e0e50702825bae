-- A person may ask for a parked record to be applied again: the consumer that has its partition does it, and the row goes with the
-- effect. attempts counts how often it failed; parked_at is when it was first set aside.
ALTER TABLE bus_parked
    ADD COLUMN attempts   integer NOT NULL DEFAULT 1,
    ADD COLUMN failed_at  timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN replay_asked_at timestamptz;
CREATE INDEX bus_parked_replay ON bus_parked (group_name, topic, partition) WHERE replay_asked_at IS NOT NULL;
