-- How many groups the errors of a project that were accepted in one hour have founded. There is a bound, so that a flood of
-- errors that never come again can't fill the tables.
CREATE TABLE group_budgets (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	project      text        NOT NULL,
	hour         timestamptz NOT NULL,
	founded      integer     NOT NULL CHECK (founded >= 0),
	PRIMARY KEY (organization, project, hour)
);
ALTER TABLE group_budgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE group_budgets FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON group_budgets USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- Only stricter hashes are counted by group, and most groups have none. A group's row changes place whenever it is seen
-- again, since last_seen is in indexes: room left in its page would stay empty.
-- All indexes are built before one is dropped, which locks readers out.
CREATE INDEX group_hashes_of_group_traced ON group_hashes (organization, error_group) WHERE level = 'trace';
CREATE INDEX error_groups_similar_everywhere ON error_groups (organization, similar_hash);

-- The list of all projects.
CREATE INDEX error_groups_of_organization ON error_groups (organization, last_seen DESC, id DESC);

ALTER TABLE error_groups SET (fillfactor = 100);
DROP INDEX group_hashes_of_group;
ALTER INDEX group_hashes_of_group_traced RENAME TO group_hashes_of_group;
DROP INDEX error_groups_similar;
ALTER INDEX error_groups_similar_everywhere RENAME TO error_groups_similar;
