-- Parts of requests of which others are missing, until they come. They have no effect before; those of a request that was never published whole
-- never have one. headers are the record's; lines are compressed, NULL where the module reads none.
CREATE TABLE inbox_held (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	project      text        NOT NULL,
	batch        uuid        NOT NULL,
	part         int         NOT NULL,
	accepted_at  timestamptz NOT NULL,
	held_at      timestamptz NOT NULL DEFAULT now(),
	headers      jsonb       NOT NULL,
	lines        bytea,
	PRIMARY KEY (organization, batch, part)
);
ALTER TABLE inbox_held ALTER COLUMN lines SET STORAGE EXTERNAL; -- it is compressed
ALTER TABLE inbox_held ENABLE ROW LEVEL SECURITY;
ALTER TABLE inbox_held FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON inbox_held USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
