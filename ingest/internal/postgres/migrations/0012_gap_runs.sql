-- Neighbouring stretches are summed up together, so that a start reads as many rows after a day as after a week. A process of before finds its
-- table gone and reads the log: it would take a run for its first stretch, and add up the others once more.
CREATE TABLE gap_runs (
	topic     uuid   NOT NULL,
	partition int    NOT NULL,
	first     bigint NOT NULL, -- stretch, and
	after     bigint NOT NULL CHECK (after > first), -- the one behind the last
	PRIMARY KEY (topic, partition, first)
);
INSERT INTO gap_runs SELECT topic, partition, stretch, stretch + 1 FROM gap_stretches;
DROP TABLE gap_stretches;
ALTER TABLE gap_charges RENAME COLUMN stretch TO first;
CREATE INDEX gap_charges_run ON gap_charges (topic, partition, first);
