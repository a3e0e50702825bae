-- The largest allowance of the period that did not cover a request: until there is a larger one nothing more is accepted.
ALTER TABLE books ADD COLUMN refused bigint NOT NULL DEFAULT 0 CHECK (refused >= 0);

-- Requests that ingest refused because the quota did not cover them: the first of a key by itself, later ones gathered with the last of them.
CREATE TABLE refusals (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	at           timestamptz NOT NULL,
	request      text        NOT NULL, -- its id
	project      text        NOT NULL,
	key          text        NOT NULL,
	environment  text        NOT NULL,
	reason       text        NOT NULL, -- empty: the quota is exhausted
	bytes        bigint      NOT NULL, -- of the request
	remaining    bigint      NOT NULL, -- of the quota, as ingest knew it
	quota        bigint      NOT NULL, -- as ingest knew it
	period_start timestamptz NOT NULL,
	exhausts     boolean     NOT NULL, -- ingest refuses everything from then on
	requests     bigint      NOT NULL CHECK (requests > 0), -- how many refusals these are
	PRIMARY KEY (organization, at, request)
);
CREATE INDEX refusals_at ON refusals USING brin (at);
ALTER TABLE refusals ENABLE ROW LEVEL SECURITY;
ALTER TABLE refusals FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON refusals USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
