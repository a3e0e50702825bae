-- A group of errors that are the same. count is exact; the times are those of the entries. levels is a set of bits,
-- debug = 1 to fatal = 16. Lists follow seen_minute, the minute of last_seen: an update within a minute changes no
-- indexed column, and so rewrites no index (a heap-only tuple).
CREATE TABLE error_groups (
	organization text        NOT NULL,
	id           text        NOT NULL,
	project      text        NOT NULL,
	title        text        NOT NULL,
	type         text        NOT NULL,
	culprit      text        NOT NULL,
	status       text        NOT NULL DEFAULT 'unresolved' CHECK (status IN ('unresolved', 'resolved', 'ignored', 'archived')),
	count        bigint      NOT NULL CHECK (count >= 0),
	first_seen   timestamptz NOT NULL,
	last_seen    timestamptz NOT NULL CHECK (last_seen >= first_seen),
	levels       smallint    NOT NULL,
	environments text[]      NOT NULL,
	samples      bigint      NOT NULL, -- occurrences stored as samples so far, replaced ones included
	similar_hash bytea       NOT NULL, -- shared with groups that may have the same cause
	why          json        NOT NULL, -- always written whole, so it is no jsonb
	expires      date        NOT NULL, -- from this day (UTC) on the group is removed: the log store then has none of its entries
	seen_minute  timestamptz NOT NULL,
	arrived      date        NOT NULL, -- the day (UTC) on which an error of it was last accepted
	calls        integer[]   NOT NULL DEFAULT '{}', -- numbers of its calls, innermost first; groups that share rare calls are similar
	first_release text       NOT NULL DEFAULT '',
	last_release text        NOT NULL DEFAULT '',
	version      bigint      NOT NULL DEFAULT 0, -- how many decisions there are about it, which are in events; status and what follows is made of them
	assignee     text        NOT NULL DEFAULT '',
	due          timestamptz, -- until when it is ignored
	decided      jsonb, -- the state in the domain
	merged_into  text        NOT NULL DEFAULT '', -- the head, whose numbers include those here; also of the row with the head's own numbers
	members      integer     NOT NULL DEFAULT 0, -- groups that are merged into it
	PRIMARY KEY (organization, id)
) WITH (fillfactor = 75); -- room for the next version of a row beside it
CREATE INDEX error_groups_by_minute ON error_groups (organization, seen_minute DESC) WHERE merged_into = '';
CREATE INDEX error_groups_of_project_by_minute ON error_groups (organization, project, seen_minute DESC) WHERE merged_into = '';
CREATE INDEX error_groups_unresolved ON error_groups (organization, project) WHERE merged_into = '' AND status = 'unresolved'; -- to count them
CREATE INDEX error_groups_merged ON error_groups (organization, id) WHERE merged_into <> '';
CREATE INDEX error_groups_members ON error_groups (organization, merged_into) WHERE merged_into <> '';
CREATE INDEX error_groups_due ON error_groups (due) WHERE due IS NOT NULL;
CREATE INDEX error_groups_similar ON error_groups (organization, project, similar_hash);

-- Which group errors with a hash belong to. The key ensures that two workers that see a new error found one group.
-- Only stricter hashes are counted by group, and most groups have none.
CREATE TABLE group_hashes (
	organization text     NOT NULL,
	project      text     NOT NULL,
	version      smallint NOT NULL, -- of the algorithm
	hash         bytea    NOT NULL CHECK (length(hash) = 16),
	level        text     NOT NULL,
	error_group  text     NOT NULL,
	PRIMARY KEY (organization, project, version, hash)
);
CREATE INDEX group_hashes_of_group ON group_hashes (organization, error_group) WHERE level = 'trace';
CREATE UNIQUE INDEX group_hashes_by_rules ON group_hashes (organization, error_group, level) WHERE level LIKE 'rules/%'; -- one for each version of rules
CREATE INDEX group_hashes_inherited ON group_hashes (organization, error_group) WHERE level = 'inherited';

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
	exceptions   json        NOT NULL, -- like the others here, always written whole
	trace        bytea       NOT NULL, -- hashes by which errors like it can be split off; empty without a usable stack trace
	stack        bytea       NOT NULL,
	built        json, -- of a script's error: its release and debug ids, by which source maps are found
	context      json, -- what rules of the project ask of the entry
	PRIMARY KEY (organization, error_group, slot)
) WITH (fillfactor = 80);

-- What is counted of a group's errors on one day (UTC), by the times of the entries.
CREATE TABLE group_days (
	organization text  NOT NULL,
	error_group  text  NOT NULL,
	day          date  NOT NULL,
	counted      json  NOT NULL, -- errors by hour, and by the values of each tag; always written whole, so it is no jsonb
	users        bytea, -- a HyperLogLog sketch of the users whom they affected; null: none was named
	PRIMARY KEY (organization, error_group, day)
) WITH (fillfactor = 75);
CREATE INDEX group_days_by_day ON group_days (day); -- to remove the oldest

-- How many groups the errors of a project that were accepted in one hour have founded. It is bounded, so that a flood of
-- unique errors can't fill the tables.
CREATE TABLE group_budgets (
	organization text        NOT NULL,
	project      text        NOT NULL,
	hour         timestamptz NOT NULL,
	founded      integer     NOT NULL CHECK (founded >= 0),
	PRIMARY KEY (organization, project, hour)
);

-- What a project's errors have in common, by which libraries are told from its own code: see Packages in the domain.
CREATE TABLE group_packages (
	organization text  NOT NULL,
	project      text  NOT NULL,
	learned      jsonb NOT NULL,
	PRIMARY KEY (organization, project)
);

-- Which errors somebody split off, by a hash that is a sample's trace or stack: those accepted after an instant.
CREATE TABLE group_splits (
	organization text        NOT NULL,
	project      text        NOT NULL,
	hash         bytea       NOT NULL CHECK (length(hash) = 16),
	after        timestamptz NOT NULL,
	error_group  text        NOT NULL, -- that they were split off from
	made         text        NOT NULL, -- the group that they make
	PRIMARY KEY (organization, project, hash)
);

-- When releases were first accepted in an environment, by the clock of the intake, and the day on which they were last.
CREATE TABLE releases (
	organization text        NOT NULL,
	project      text        NOT NULL,
	environment  text        NOT NULL,
	release      text        NOT NULL,
	first_seen   timestamptz NOT NULL,
	seen         date        NOT NULL,
	PRIMARY KEY (organization, project, environment, release)
);

-- What a project has set for its errors that are accepted from a time on. The last row counts; others are for errors that are read again.
CREATE TABLE error_settings (
	organization text        NOT NULL,
	project      text        NOT NULL,
	since        timestamptz NOT NULL,
	paths        jsonb       NOT NULL, -- where the metadata of its entries has the release and other things
	archive_days smallint    NOT NULL DEFAULT 0 CHECK (archive_days >= 0), -- without an error, after which a group is archived; 0: it never is
	actor        text        NOT NULL,
	PRIMARY KEY (organization, project, since)
);

-- Who looks after new groups of a project, for errors accepted from a time on: see Owners in the domain. The last row counts;
-- others say what was before, and who changed it.
CREATE TABLE error_owners (
	organization text        NOT NULL,
	project      text        NOT NULL,
	since        timestamptz NOT NULL,
	rules        jsonb       NOT NULL,
	actor        text        NOT NULL,
	PRIMARY KEY (organization, project, since)
);

-- What was answered to a request with an Idempotency-Key: key and input are hashes.
CREATE TABLE answers (
	organization text        NOT NULL,
	key          bytea       NOT NULL,
	input        bytea       NOT NULL,
	answer       jsonb       NOT NULL,
	answered_at  timestamptz NOT NULL,
	PRIMARY KEY (organization, key)
);

-- What is told of a project's errors, and what waits for that: see AlertRule and Waiting in the domain.
CREATE TABLE error_alerts (
	organization text        NOT NULL,
	id           text        NOT NULL,
	project      text        NOT NULL,
	rule         jsonb       NOT NULL,
	since        timestamptz NOT NULL, -- it holds for errors accepted from then on
	waiting      jsonb       NOT NULL DEFAULT '{}',
	due          timestamptz, -- when what waits is sent
	version      bigint      NOT NULL DEFAULT 1,
	updated_by   text        NOT NULL,
	updated_at   timestamptz NOT NULL,
	tested_at    timestamptz NOT NULL DEFAULT '-infinity',
	messages     bigint      NOT NULL DEFAULT 0, -- that were sent
	lines        bigint      NOT NULL DEFAULT 0, -- rows of error_alert_log there have been
	last_outcome text        NOT NULL DEFAULT '', -- of the newest of them
	PRIMARY KEY (organization, id)
) WITH (fillfactor = 50);
CREATE INDEX error_alerts_of_project ON error_alerts (organization, project);
CREATE INDEX error_alerts_due ON error_alerts (due) WHERE due IS NOT NULL;

-- How many errors of a group came of late, for each alert that counts them: see Burst in the domain. Within a day an update changes
-- no indexed column.
CREATE TABLE error_alert_counts (
	organization text NOT NULL,
	error_group  text NOT NULL,
	bursts       json NOT NULL, -- by alert
	newest       date NOT NULL, -- of the last error
	PRIMARY KEY (organization, error_group)
) WITH (fillfactor = 50);
CREATE INDEX counts_by_age ON error_alert_counts (newest);

-- What became of what alerts had to tell: slots are used again.
CREATE TABLE error_alert_log (
	organization text        NOT NULL,
	alert        text        NOT NULL,
	slot         smallint    NOT NULL,
	line         bigint      NOT NULL, -- its number
	first_at     timestamptz NOT NULL,
	at           timestamptz NOT NULL,
	outcome      text        NOT NULL,
	groups       bigint      NOT NULL,
	error_group  text        NOT NULL, -- the first of them
	PRIMARY KEY (organization, alert, slot)
);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['error_groups', 'group_hashes', 'occurrences', 'group_days', 'group_budgets', 'group_packages', 'group_splits', 'releases', 'error_settings', 'error_owners', 'answers',
		'error_alerts', 'error_alert_counts', 'error_alert_log'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = (SELECT current_setting(''weir.organization'', true))
			OR (SELECT current_setting(''weir.organization'', true)) = ''*'')', name);
	END LOOP;
END $$;
