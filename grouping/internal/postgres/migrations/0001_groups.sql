-- A group of errors that are the same. count is exact; the times are those of the entries. levels is a set of bits,
-- debug = 1 to fatal = 16. similar is the hash that it shares with groups that may be about the same thing.
CREATE TABLE error_groups (
	organization text        NOT NULL,
	id           text        NOT NULL,
	project      text        NOT NULL,
	title        text        NOT NULL,
	type         text        NOT NULL,
	culprit      text        NOT NULL,
	status       text        NOT NULL DEFAULT 'unresolved' CHECK (status IN ('unresolved', 'resolved', 'ignored')),
	count        bigint      NOT NULL CHECK (count >= 0),
	first_seen   timestamptz NOT NULL,
	last_seen    timestamptz NOT NULL CHECK (last_seen >= first_seen),
	levels       smallint    NOT NULL,
	environments text[]      NOT NULL,
	samples      bigint      NOT NULL, -- how many occurrences were stored as samples so far, those that were replaced too
	similar_hash bytea       NOT NULL,
	why          jsonb       NOT NULL,
	PRIMARY KEY (organization, id)
) WITH (fillfactor = 80);
CREATE INDEX error_groups_newest ON error_groups (organization, project, last_seen DESC, id DESC);
CREATE INDEX error_groups_similar ON error_groups (organization, project, similar_hash);

-- Which group errors with a hash belong to. The key makes sure that two workers that meet a new error found one group.
CREATE TABLE group_hashes (
	organization text     NOT NULL,
	project      text     NOT NULL,
	version      smallint NOT NULL, -- of the algorithm
	hash         bytea    NOT NULL CHECK (length(hash) = 16),
	level        text     NOT NULL,
	error_group  text     NOT NULL,
	PRIMARY KEY (organization, project, version, hash)
);
CREATE INDEX group_hashes_of_group ON group_hashes (organization, error_group);

-- A few occurrences of each group: the first ones and the newest, each in its slot.
CREATE TABLE occurrences (
	organization text        NOT NULL,
	error_group  text        NOT NULL,
	slot         smallint    NOT NULL,
	entry        text        NOT NULL,
	at           timestamptz NOT NULL,
	level        smallint    NOT NULL,
	environment  text        NOT NULL,
	message      text        NOT NULL, -- of the entry
	exceptions   jsonb       NOT NULL,
	PRIMARY KEY (organization, error_group, slot)
) WITH (fillfactor = 80);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['error_groups', 'group_hashes', 'occurrences'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
