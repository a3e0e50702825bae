-- Each decision and statement has the hash of the one before. head is the hash of the last decision, stated that of the last
-- statement, and statements how many were made.
ALTER TABLE organizations
	ADD COLUMN head       bytea  NOT NULL DEFAULT '',
	ADD COLUMN statements bigint NOT NULL DEFAULT 0,
	ADD COLUMN stated     bytea  NOT NULL DEFAULT '';
ALTER TABLE statements
	ADD COLUMN previous bytea NOT NULL DEFAULT '',
	ADD COLUMN hash     bytea NOT NULL DEFAULT '';
