-- The rules of the installation, as the settings of the process that started last have them. Decisions keep what they were made with; a changed rule
-- is a decision about each organization that it concerns. They replace published_terms, which programs of the version before still write.
CREATE TABLE terms (
	one_row boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one_row),
	version bigint  NOT NULL CHECK (version > 0),
	rules   jsonb   NOT NULL
);

-- usual_thresholds are the installation's, as last decided; terms is the version of the rules that the organization follows.
ALTER TABLE organizations
	ADD COLUMN usual_thresholds int[],
	ADD COLUMN terms            bigint NOT NULL DEFAULT 0;
CREATE INDEX organizations_terms ON organizations (terms);

-- Plans that were decided without terms have the usual ones, until the organization follows what is recorded.
SELECT set_config('weir.organization', '*', true);
UPDATE organizations SET usual_thresholds = '{50,80,100}', plans = (SELECT jsonb_agg(plan || jsonb_build_object('terms', usual.terms) ORDER BY place)
	FROM jsonb_array_elements(plans) WITH ORDINALITY AS p (plan, place) LEFT JOIN (VALUES
		('indie',        '{"version": 0, "quota": 1073741824, "requests_per_minute": 60, "retention_days": 7}'::jsonb),
		('bootstrapper', '{"version": 0, "quota": 10737418240, "requests_per_minute": 300, "retention_days": 30}'),
		('compliance',   '{"version": 0, "quota": 53687091200, "requests_per_minute": 600, "retention_days": 365}'),
		('scale',        '{"version": 0, "quota": 536870912000, "requests_per_minute": 1800, "retention_days": 90}')) AS usual (tier, terms)
		ON usual.tier = plan ->> 'tier') WHERE plans <> '[]';
SELECT set_config('weir.organization', '', true);
