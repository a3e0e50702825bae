-- The last record that a position has passed, as its log had it. A log that was shortened and has grown since has another one there.
-- NULL: none yet, or the log was moved.
ALTER TABLE bus_positions ADD COLUMN last_offset bigint, ADD COLUMN last_time timestamptz, ADD COLUMN last_sum bigint;
