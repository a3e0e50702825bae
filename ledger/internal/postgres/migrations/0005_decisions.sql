-- What is decided about an organization, and what becomes of it by itself.
ALTER TABLE organizations
	ADD COLUMN pool           bigint NOT NULL DEFAULT 0 CHECK (pool >= 0), -- what is left of its grants that are in force
	ADD COLUMN closed_through timestamptz,                                 -- periods that end by then are closed
	ADD COLUMN decisions      bigint NOT NULL DEFAULT 0,                   -- how many there are in its stream of events
	ADD COLUMN due_at         timestamptz;                                 -- when something happens next by itself
CREATE INDEX organizations_due ON organizations (due_at);

-- Periods of before are taken for closed, as they were left. Until now every period was a calendar month.
SELECT set_config('weir.organization', '*', true);
UPDATE organizations SET closed_through = date_trunc('month', now() - interval '3 days', 'UTC'),
	due_at = date_trunc('month', now() - interval '3 days', 'UTC') + interval '1 month' WHERE plans <> '[]';
SELECT set_config('weir.organization', '', true);

-- credit is what a period added to the grants, or, below zero, used of those of before; expired and voided came to nothing.
ALTER TABLE books
	ADD COLUMN credit  bigint NOT NULL DEFAULT 0,
	ADD COLUMN expired bigint NOT NULL DEFAULT 0,
	ADD COLUMN voided  bigint NOT NULL DEFAULT 0,
	DROP CONSTRAINT balances_sum_to_zero,
	ADD CONSTRAINT all_balances_sum_to_zero CHECK (issuer + grant_left + consumed + overage + credit + expired + voided = 0) NOT VALID,
	ADD CONSTRAINT what_is_gone_stays_gone CHECK (expired >= 0 AND voided >= 0) NOT VALID;

-- What organizations may use beside their plans. A grant is an account of its own.
CREATE TABLE grants (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	id           text        NOT NULL,
	amount       bigint      NOT NULL CHECK (amount > 0),
	remaining    bigint      NOT NULL CHECK (remaining >= 0),
	consumed     bigint      NOT NULL CHECK (consumed >= 0),
	expired      bigint      NOT NULL CHECK (expired >= 0),
	voided       bigint      NOT NULL CHECK (voided >= 0),
	priority     int         NOT NULL,
	starts_at    timestamptz NOT NULL,
	expires_at   timestamptz,
	rollover_cap bigint,
	source       smallint    NOT NULL,
	reason       text        NOT NULL,
	created_at   timestamptz NOT NULL,
	status       smallint    NOT NULL,
	announced    boolean     NOT NULL,
	ended_at     timestamptz,
	PRIMARY KEY (organization, id),
	CONSTRAINT every_byte_is_somewhere CHECK (status = 1 AND remaining + consumed + expired + voided = 0
		OR remaining + consumed + expired + voided = amount)
) WITH (fillfactor = 60);
CREATE INDEX grants_by_age ON grants (organization, created_at, id);

-- What was answered to a request that brought an Idempotency-Key: key and input are hashes.
CREATE TABLE answers (
	organization text        NOT NULL CHECK (organization <> ''),
	key          bytea       NOT NULL,
	input        bytea       NOT NULL,
	answer       jsonb       NOT NULL,
	answered_at  timestamptz NOT NULL,
	PRIMARY KEY (organization, key)
);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['grants', 'answers'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
