-- What books were at positions of the log and behind a decision, taken when the hour was sealed: the root of the hour has the hash. A rebuild begins
-- there where the log, or decisions, no longer reach back further.
CREATE TABLE checkpoints (
	hour      timestamptz NOT NULL PRIMARY KEY,
	topic_id  uuid        NOT NULL,
	positions jsonb       NOT NULL, -- {"partition": next offset, ...}
	decision  bigint      NOT NULL, -- position of the last in events
	hash      bytea       NOT NULL
);

-- Rows of an organization in a table, as JSON; NULL once the organization is erased. hash is the SHA-256 of its text.
CREATE TABLE checkpoint_rows (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	hour         timestamptz NOT NULL REFERENCES checkpoints ON DELETE CASCADE,
	kind         text        NOT NULL, -- the table
	content      jsonb,
	hash         bytea       NOT NULL,
	PRIMARY KEY (organization, hour, kind)
);
CREATE INDEX checkpoint_rows_hour ON checkpoint_rows (hour);
ALTER TABLE checkpoint_rows ENABLE ROW LEVEL SECURITY;
ALTER TABLE checkpoint_rows FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON checkpoint_rows USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- The checkpoint in the root; NULL: none was taken then.
ALTER TABLE seals ADD COLUMN checkpoint bytea;
