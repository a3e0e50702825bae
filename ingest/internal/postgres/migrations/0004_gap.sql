-- What stretches of a partition of weir.logs.v1 come to that the ledger has not counted for long, so that a start need not read them: offsets
-- from 32768 * stretch on. Only those are summed that lie wholly in the log; they go once the ledger has counted them.
CREATE TABLE gap_stretches (
	topic     uuid   NOT NULL,
	partition int    NOT NULL,
	stretch   bigint NOT NULL,
	PRIMARY KEY (topic, partition, stretch)
);
CREATE TABLE gap_charges (
	organization text   NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	topic        uuid   NOT NULL,
	partition    int    NOT NULL,
	stretch      bigint NOT NULL,
	day          date   NOT NULL, -- of acceptance
	bytes        bigint NOT NULL,
	PRIMARY KEY (organization, topic, partition, stretch, day)
);
ALTER TABLE gap_charges ENABLE ROW LEVEL SECURITY;
ALTER TABLE gap_charges FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON gap_charges USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
