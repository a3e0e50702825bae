-- Source maps of a project's scripts. One holds for errors accepted from valid_from until another content replaced it, or
-- somebody deleted it, and is kept for a while after that: a record that is read again ends in the same group.
CREATE TABLE source_maps (
	organization text        NOT NULL,
	id           text        NOT NULL,
	project      text        NOT NULL,
	release      text        NOT NULL, -- or ''
	name         text        NOT NULL, -- of the script: ~ and its path
	debug_id     text        NOT NULL, -- 32 hexadecimal digits, or ''
	digest       bytea       NOT NULL CHECK (length(digest) = 32), -- SHA-256 of the text
	size         bigint      NOT NULL, -- of the text
	stored       bigint      NOT NULL, -- bytes of the parts
	segments     integer     NOT NULL,
	uploaded     timestamptz NOT NULL,
	uploaded_by  text        NOT NULL,
	valid_from   timestamptz NOT NULL,
	valid_until  timestamptz,
	used         date        NOT NULL, -- when an error's call was last found in it; the day of the upload before
	PRIMARY KEY (organization, id),
	CHECK (release <> '' OR debug_id <> '')
) WITH (fillfactor = 75);
CREATE INDEX source_maps_of_script ON source_maps (organization, project, release, name);
CREATE INDEX source_maps_of_debug_id ON source_maps (organization, project, debug_id) WHERE debug_id <> '';

-- The segments of a map in parts, each from a place of the script, from 0, up to the next part.
CREATE TABLE source_map_parts (
	organization text    NOT NULL,
	map          text    NOT NULL,
	line         integer NOT NULL,
	col          integer NOT NULL,
	data         bytea   NOT NULL, -- packed
	PRIMARY KEY (organization, map, line, col),
	FOREIGN KEY (organization, map) REFERENCES source_maps ON DELETE CASCADE
);
ALTER TABLE source_map_parts ALTER data SET STORAGE EXTERNAL;

-- Projects whose groups are looked at again because maps have come: from which group on, in the order of ids, and what was found.
CREATE TABLE source_map_searches (
	organization text        NOT NULL,
	project      text        NOT NULL,
	due          timestamptz, -- NULL: it has ended
	started      timestamptz NOT NULL,
	last_group   text        NOT NULL DEFAULT '',
	groups       integer     NOT NULL DEFAULT 0, -- looked at
	samples      integer     NOT NULL DEFAULT 0, -- mapped
	PRIMARY KEY (organization, project)
) WITH (fillfactor = 50);
CREATE INDEX source_map_searches_due ON source_map_searches (due) WHERE due IS NOT NULL;

-- Groups whose samples have other hashes by their maps, and are to be merged with the group that has this one, once there is
-- such a one. That is done once: somebody may take them apart again.
CREATE TABLE source_map_joins (
	organization text     NOT NULL,
	error_group  text     NOT NULL,
	project      text     NOT NULL,
	version      smallint NOT NULL,
	hash         bytea    NOT NULL CHECK (length(hash) = 16),
	release      text     NOT NULL, -- or '', as samples have it
	joined       boolean  NOT NULL DEFAULT false,
	PRIMARY KEY (organization, error_group),
	FOREIGN KEY (organization, error_group) REFERENCES error_groups ON DELETE CASCADE
);
CREATE INDEX source_map_joins_open ON source_map_joins (organization, project, version, hash) WHERE NOT joined;

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['source_maps', 'source_map_parts', 'source_map_searches', 'source_map_joins'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name);
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = (SELECT current_setting(''weir.organization'', true))
			OR (SELECT current_setting(''weir.organization'', true)) = ''*'')', name);
	END LOOP;
END $$;
