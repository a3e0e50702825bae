-- What a refusal exhausted: since is the raises of the book or the since of the budget, refused the allowance or budget, 0: none. What the refusals
-- of before exhausted is not known: they go.
TRUNCATE refusals;
SELECT set_config('weir.organization', '*', true);
UPDATE books SET refused = 0 WHERE refused > 0;
UPDATE budgets SET refused = 0 WHERE refused > 0;
SELECT set_config('weir.organization', '', true);
ALTER TABLE refusals
	ADD COLUMN since   bigint NOT NULL,
	ADD COLUMN refused bigint NOT NULL CHECK (refused >= 0);

-- How many refusals of an organization were saved for a day (UTC), and the SHA-256 of all, by exclusive or: one that is changed, added or taken
-- away differs. The root of hour has the sum; refusals that come later are in another.
DROP TABLE refusal_days;
CREATE TABLE refusal_days (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	day          timestamptz NOT NULL,
	hour         timestamptz NOT NULL DEFAULT 'infinity', -- infinity: no root has it yet
	refusals     bigint      NOT NULL CHECK (refusals > 0),
	checksum     bit(256)    NOT NULL,
	saved_at     timestamptz NOT NULL, -- when the first of them was
	PRIMARY KEY (organization, day, hour)
) WITH (fillfactor = 60);
CREATE INDEX refusal_days_age ON refusal_days (greatest(day, hour)); -- by which they go
CREATE INDEX refusal_days_unsealed ON refusal_days (saved_at) WHERE hour = 'infinity';
ALTER TABLE refusal_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE refusal_days FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON refusal_days USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- The SHA-256 of the sums of refusals in the root; NULL: nothing was refused.
ALTER TABLE seals ADD COLUMN refused bytea;
