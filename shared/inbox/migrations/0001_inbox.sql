-- Which parts of which batches had their effect. A producer that sends a record again after a crash gives it a second
-- offset; this is where it is known again. Partitioned by the day of acceptance (UTC), so that old days are dropped whole.
CREATE TABLE inbox (
	day   date NOT NULL,
	batch uuid NOT NULL,
	part  int  NOT NULL,
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
