-- How many refusals of an organization were saved for a day (UTC), and the checksums of all, by exclusive or: one that is changed, added or
-- taken away differs. They go with the refusals.
CREATE TABLE refusal_days (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	day          timestamptz NOT NULL,
	refusals     bigint      NOT NULL CHECK (refusals > 0),
	checksum     bigint      NOT NULL,
	PRIMARY KEY (organization, day)
) WITH (fillfactor = 60);
CREATE INDEX refusal_days_day ON refusal_days (day); -- by which they go
ALTER TABLE refusal_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE refusal_days FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON refusal_days USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

SELECT set_config('weir.organization', '*', true);
INSERT INTO refusal_days SELECT organization, date_trunc('day', at, 'UTC'), count(*),
	bit_xor(('x' || left(encode(sha256(convert_to(jsonb_build_array(organization, (extract(epoch FROM at) * 1000000)::bigint, request, project, key, environment,
		reason, bytes, remaining, quota, (extract(epoch FROM period_start) * 1000000)::bigint, exhausts, requests)::text, 'UTF8')), 'hex'), 16))::bit(64)::bigint)
	FROM refusals GROUP BY 1, 2;
SELECT set_config('weir.organization', '', true);
