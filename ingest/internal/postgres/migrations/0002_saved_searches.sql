-- Searches that people have named.
CREATE TABLE saved_searches (
	organization text        NOT NULL,
	id           text        NOT NULL,
	project      text        NOT NULL, -- '': all projects
	owner        text        NOT NULL, -- the member who alone sees it; '': everybody does
	name         text        NOT NULL,
	query        text        NOT NULL,
	levels       text[]      NOT NULL,
	environment  text        NOT NULL,
	last         text        NOT NULL, -- the time up to now; '': from and to
	from_time    text        NOT NULL,
	to_time      text        NOT NULL,
	fields       text[]      NOT NULL,
	version      bigint      NOT NULL,
	created_by   text        NOT NULL,
	created_at   timestamptz NOT NULL,
	updated_by   text        NOT NULL,
	updated_at   timestamptz NOT NULL,
	PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX saved_searches_by_name ON saved_searches (organization, owner, project, lower(name));

-- When a saved search is looked at, and what came of it. Who evaluates it claims it for a while; claim fences those who were
-- too slow.
CREATE TABLE alerts (
	organization   text        NOT NULL,
	search         text        NOT NULL,
	every_seconds  integer     NOT NULL CHECK (every_seconds >= 60),
	window_seconds integer     NOT NULL,
	fewer          boolean     NOT NULL, -- than the threshold; else more
	threshold      bigint      NOT NULL,
	times          smallint    NOT NULL,
	quiet_seconds  integer     NOT NULL,
	examples       smallint    NOT NULL,
	roles          text[]      NOT NULL, -- who get mail
	members        text[]      NOT NULL, -- the same
	state          text        NOT NULL CHECK (state IN ('ok', 'firing', 'unevaluated')),
	since          timestamptz NOT NULL,
	streak         smallint    NOT NULL DEFAULT 0,
	blind_since    timestamptz,
	told           text        NOT NULL CHECK (told IN ('ok', 'firing', 'unevaluated')),
	fired_at       timestamptz,
	muted_until    timestamptz,
	facts          bigint      NOT NULL DEFAULT 0,
	version        bigint      NOT NULL DEFAULT 1,
	updated_by     text        NOT NULL,
	updated_at     timestamptz NOT NULL,
	next_at        timestamptz NOT NULL,
	claim          bigint      NOT NULL DEFAULT 0,
	claimed_until  timestamptz NOT NULL DEFAULT '-infinity',
	evaluated_at   timestamptz NOT NULL DEFAULT '-infinity', -- or tried to
	tested_at      timestamptz NOT NULL DEFAULT '-infinity',
	evaluations    bigint      NOT NULL DEFAULT 0, -- rows of alert_history there have been
	changes        bigint      NOT NULL DEFAULT 0, -- the same
	PRIMARY KEY (organization, search),
	FOREIGN KEY (organization, search) REFERENCES saved_searches ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX alerts_due ON alerts (next_at);

-- The newest evaluations, and the newest of those that changed something: slots are used again.
CREATE TABLE alert_history (
	organization text        NOT NULL,
	search       text        NOT NULL,
	changes      boolean     NOT NULL,
	slot         smallint    NOT NULL,
	at           timestamptz NOT NULL, -- the end of the window
	entries      bigint      NOT NULL,
	part         boolean     NOT NULL,
	verdict      text        NOT NULL,
	state        text        NOT NULL, -- after it
	told         boolean     NOT NULL,
	held         text        NOT NULL, -- why it was not told
	reason       text        NOT NULL, -- why it was not evaluated
	PRIMARY KEY (organization, search, changes, slot),
	FOREIGN KEY (organization, search) REFERENCES alerts ON DELETE CASCADE
) WITH (fillfactor = 50);

-- Up to when the log store is known to have all that was accepted, and until when what lacks entries is not judged, as their
-- senders could not reach Weir. One row.
CREATE TABLE alert_clock (
	one        boolean     PRIMARY KEY DEFAULT true CHECK (one),
	stored_at  timestamptz NOT NULL,
	hold_until timestamptz NOT NULL
) WITH (fillfactor = 50);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['saved_searches', 'alerts', 'alert_history'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
