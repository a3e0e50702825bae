-- All indexes are built before one is dropped, which locks readers out.
CREATE INDEX error_groups_of_project_by_minute ON error_groups (organization, project, seen_minute DESC);
CREATE INDEX error_groups_by_minute ON error_groups (organization, seen_minute DESC);
ALTER TABLE error_groups SET (fillfactor = 75); -- room for the next version of a row beside it
DROP INDEX error_groups_newest;
DROP INDEX error_groups_of_organization;
