-- Which parts of which batches had their effect. A producer that sends a record again after a crash gives it a second
-- offset; here it is recognized. Partitioned by the day of acceptance (UTC), so that old days are dropped whole.
CREATE TABLE inbox (
	day      date NOT NULL,
	batch    uuid NOT NULL,
	part     int  NOT NULL,
	checksum bigint NOT NULL, -- of the part, to tell a copy from another record of the same id: see contract.LogsAccepted.Checksum
	PRIMARY KEY (day, batch, part)
) PARTITION BY RANGE (day);

-- Which batch an idempotency key stands for. The digest tells the same request sent again from another one.
CREATE TABLE inbox_idempotency (
	idempotency text        NOT NULL,
	accepted_at timestamptz NOT NULL,
	batch       uuid        NOT NULL,
	digest      text        NOT NULL,
	PRIMARY KEY (idempotency, accepted_at)
);
CREATE INDEX inbox_idempotency_age ON inbox_idempotency (accepted_at);

-- Parts of requests of which others are missing, until they come. They have no effect before; those of a request that was
-- never published whole never have one. headers are the record's; lines are compressed, null where the module reads none.
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
