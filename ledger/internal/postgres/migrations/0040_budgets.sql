-- How much of each period one project or API key may use, and what it has used of the running one. One of project and key is empty.
CREATE TABLE budgets (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	project      text        NOT NULL,
	key          text        NOT NULL,
	bytes        bigint      NOT NULL CHECK (bytes > 0),
	used         bigint      NOT NULL CHECK (used >= 0), -- of what was accepted in the period
	period_start timestamptz NOT NULL,
	reached      smallint    NOT NULL, -- the highest threshold announced, in percent
	refused      bigint      NOT NULL CHECK (refused >= 0), -- the largest budget of the period that did not cover a request
	since        bigint      NOT NULL, -- number of the decision with which it began
	PRIMARY KEY (organization, project, key),
	CONSTRAINT of_one_spender CHECK ((project = '') <> (key = ''))
) WITH (fillfactor = 60);
ALTER TABLE budgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE budgets FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON budgets USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- How many budgets an organization has: who has none is charged without a look at them.
ALTER TABLE organizations ADD COLUMN budgets smallint NOT NULL DEFAULT 0;
