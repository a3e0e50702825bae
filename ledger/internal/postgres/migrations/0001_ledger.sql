-- What the ledger knows of an organization. The row is also the lock under which its books are written.
CREATE TABLE organizations (
	organization     text        NOT NULL PRIMARY KEY,
	anchor_day       smallint    NOT NULL DEFAULT 1 CHECK (anchor_day BETWEEN 1 AND 31),
	plans            jsonb       NOT NULL DEFAULT '[]', -- its timeline, [{"from": instant, "tier": name, …}, …]; empty while only its logs are known
	suspended        boolean     NOT NULL DEFAULT false,
	opened_at        timestamptz NOT NULL,
	pool             bigint      NOT NULL DEFAULT 0 CHECK (pool >= 0), -- what is left of its grants that are in force
	closed_through   timestamptz,                -- periods that end by then are closed
	decisions        bigint      NOT NULL DEFAULT 0, -- how many there are in its stream of events
	due_at           timestamptz,                -- when something is next due by itself
	decided_at       timestamptz,                -- of the last decision; no later one has an earlier instant, whatever the clock says
	budgets          smallint    NOT NULL DEFAULT 0, -- how many it has; without any, charging doesn't look for them
	thresholds       int[],                      -- announced to it, in percent; null: those of the installation
	clock            timestamptz,                -- the time of a test; null: no test
	anchors          jsonb       NOT NULL DEFAULT '[]', -- later days on which periods begin, [{"from": instant, "day": number}, …]
	usual_thresholds int[],                      -- of the installation, as last decided
	terms            bigint      NOT NULL DEFAULT 0, -- version of the rules that it follows
	head             bytea       NOT NULL DEFAULT '', -- hash of its last decision
	statements       bigint      NOT NULL DEFAULT 0, -- how many were made
	stated           bytea       NOT NULL DEFAULT ''  -- hash of the last
);
CREATE INDEX organizations_due ON organizations (due_at);
CREATE INDEX organizations_terms ON organizations (terms);

-- The balances of one organization and period, in bytes. The columns are accounts: what leaves one arrives at another.
CREATE TABLE books (
	organization text        NOT NULL,
	period_start timestamptz NOT NULL,
	period_end   timestamptz NOT NULL CHECK (period_end > period_start),
	issuer       bigint      NOT NULL CHECK (issuer <= 0),
	grant_left   bigint      NOT NULL CHECK (grant_left >= 0),
	consumed     bigint      NOT NULL CHECK (consumed >= 0),
	overage      bigint      NOT NULL CHECK (overage >= 0),
	reached      smallint    NOT NULL DEFAULT 0, -- the highest threshold announced, in percent
	refused      bigint      NOT NULL DEFAULT 0 CHECK (refused >= 0), -- the largest allowance that didn't cover a request: without a larger one nothing more is accepted
	credit       bigint      NOT NULL DEFAULT 0, -- what the period added to the grants or, below zero, used of earlier ones
	expired      bigint      NOT NULL DEFAULT 0,
	voided       bigint      NOT NULL DEFAULT 0,
	raises       bigint      NOT NULL DEFAULT 0, -- how often the allowance was raised: a refusal by an earlier one says nothing about this one
	overshoot    bigint      NOT NULL DEFAULT 0, -- admitted beyond what the plan allows: the operator's, never owed by the organization
	PRIMARY KEY (organization, period_start),
	CONSTRAINT all_accounts_sum_to_zero CHECK (issuer + grant_left + consumed + overage + credit + expired + voided + overshoot = 0),
	CONSTRAINT no_overage_beside_a_grant CHECK (overage = 0 OR grant_left = 0),
	CONSTRAINT overshoot_stays CHECK (overshoot >= 0),
	CONSTRAINT what_is_gone_stays_gone CHECK (expired >= 0 AND voided >= 0)
) WITH (fillfactor = 60);

-- Every transfer, partitioned by the UTC day on which it took effect. Rows are only ever added. The numbers of accounts,
-- reasons and sources are those of the domain. (source, partition, offset) is the event that caused it. No table has more
-- rows: wide columns come first, which leaves no gaps, and the key has a hash in place of the organization.
CREATE TABLE transfers (
	organization_hash bigint      NOT NULL GENERATED ALWAYS AS (hashtextextended(organization, 0)) STORED,
	effective_at      timestamptz NOT NULL,
	"offset"          bigint      NOT NULL,
	period_start      timestamptz NOT NULL,
	amount            bigint      NOT NULL CHECK (amount > 0),
	booked_at         timestamptz NOT NULL,
	of_period         timestamptz, -- start of the period that they make good
	partition         int         NOT NULL,
	entries           int         NOT NULL,
	source            smallint    NOT NULL,
	line              smallint    NOT NULL,
	from_account      smallint    NOT NULL,
	to_account        smallint    NOT NULL CHECK (from_account <> to_account),
	reason            smallint    NOT NULL,
	organization      text        NOT NULL,
	project           text        NOT NULL,
	key               text        NOT NULL,
	event             text        NOT NULL,
	grant_id          text        NOT NULL DEFAULT '', -- the grant whose bytes they are
	PRIMARY KEY (organization_hash, effective_at, "offset", partition, source, line)
) PARTITION BY RANGE (effective_at);
-- Transfers of one transaction share booked_at and lie together, so a block range index finds them at almost no cost.
CREATE INDEX transfers_booked ON transfers USING brin (booked_at) WITH (pages_per_range = 32);

-- Sums of the transfers whose days are gone, by organization, period and kind: with those that are left they make the book.
CREATE TABLE folded_transfers (
	organization text        NOT NULL,
	period_start timestamptz NOT NULL,
	source       smallint    NOT NULL,
	reason       smallint    NOT NULL,
	from_account smallint    NOT NULL,
	to_account   smallint    NOT NULL CHECK (from_account <> to_account),
	amount       bigint      NOT NULL CHECK (amount > 0),
	entries      bigint      NOT NULL,
	transfers    bigint      NOT NULL CHECK (transfers > 0), -- how many they were
	PRIMARY KEY (organization, period_start, source, reason, from_account, to_account),
	FOREIGN KEY (organization, period_start) REFERENCES books (organization, period_start) ON DELETE CASCADE
);

-- What organizations may use beside their plans. A grant is an account of its own.
CREATE TABLE grants (
	organization text        NOT NULL,
	id           text        NOT NULL,
	amount       bigint      NOT NULL CHECK (amount > 0),
	remaining    bigint      NOT NULL CHECK (remaining >= 0),
	consumed     bigint      NOT NULL CHECK (consumed >= 0),
	expired      bigint      NOT NULL CHECK (expired >= 0),
	voided       bigint      NOT NULL CHECK (voided >= 0),
	priority     int         NOT NULL,
	starts_at    timestamptz NOT NULL,
	expires_at   timestamptz,
	rollover_cap bigint,
	source       smallint    NOT NULL,
	reason       text        NOT NULL,
	created_at   timestamptz NOT NULL,
	status       smallint    NOT NULL,
	announced    boolean     NOT NULL,
	ended_at     timestamptz,
	ahead        jsonb       NOT NULL DEFAULT '[]', -- with a rollover cap: what was used in later periods than the earliest open one, [{"start": instant, "bytes": number}, …]
	decision     bigint      NOT NULL DEFAULT 0, -- number of the decision that made it, with which it is compared
	PRIMARY KEY (organization, id),
	CONSTRAINT every_byte_is_somewhere CHECK (status = 1 AND remaining + consumed + expired + voided = 0
		OR remaining + consumed + expired + voided = amount)
) WITH (fillfactor = 60);
CREATE INDEX grants_by_age ON grants (organization, created_at, id);

-- How much of each period one project or API key may use, and what it has used of the running one.
CREATE TABLE budgets (
	organization text        NOT NULL,
	project      text        NOT NULL,
	key          text        NOT NULL,
	bytes        bigint      NOT NULL CHECK (bytes > 0),
	used         bigint      NOT NULL CHECK (used >= 0), -- of what was accepted in the period
	period_start timestamptz NOT NULL,
	reached      smallint    NOT NULL, -- the highest threshold announced, in percent
	refused      bigint      NOT NULL CHECK (refused >= 0), -- the largest budget of the period that didn't cover a request
	since        bigint      NOT NULL, -- number of the decision with which it began
	PRIMARY KEY (organization, project, key),
	CONSTRAINT of_one_spender CHECK ((project = '') <> (key = ''))
) WITH (fillfactor = 60);

-- What a period came to beside the simple use of its plan: statements are made of this, of books and of usage.
CREATE TABLE period_lines (
	organization text        NOT NULL,
	period_start timestamptz NOT NULL,
	kind         smallint    NOT NULL,
	subject      text        NOT NULL, -- id of the grant or the adjustment; empty: of none
	of_period    timestamptz NOT NULL, -- start of the period that it makes good; else period_start
	bytes        bigint      NOT NULL,
	PRIMARY KEY (organization, period_start, kind, subject, of_period),
	FOREIGN KEY (organization, period_start) REFERENCES books (organization, period_start) ON DELETE CASCADE
) WITH (fillfactor = 60);

-- What closed periods came to. A statement is made once and, like decisions, can't be derived from anything else.
CREATE TABLE statements (
	organization text        NOT NULL,
	number       bigint      NOT NULL CHECK (number > 0),
	period_start timestamptz NOT NULL,
	period_end   timestamptz NOT NULL,
	made_at      timestamptz NOT NULL,
	document     jsonb       NOT NULL,
	previous     bytea       NOT NULL DEFAULT '', -- hash of the statement before
	hash         bytea       NOT NULL DEFAULT '',
	PRIMARY KEY (organization, number),
	UNIQUE (organization, period_start)
);

-- Requests that ingest refused because the quota didn't cover them: the first of a key by itself, later ones gathered with
-- the last of them.
CREATE TABLE refusals (
	organization text        NOT NULL,
	at           timestamptz NOT NULL,
	request      text        NOT NULL, -- its id
	project      text        NOT NULL,
	key          text        NOT NULL,
	environment  text        NOT NULL,
	reason       text        NOT NULL, -- empty: the quota is exhausted
	bytes        bigint      NOT NULL, -- of the request
	remaining    bigint      NOT NULL, -- of the quota, as ingest knew it
	quota        bigint      NOT NULL, -- as ingest knew it
	period_start timestamptz NOT NULL,
	exhausts     boolean     NOT NULL, -- ingest refuses everything from then on
	requests     bigint      NOT NULL CHECK (requests > 0), -- how many refusals these are
	since        bigint      NOT NULL, -- the raises of the book, or the since of the budget, that it exhausted
	refused      bigint      NOT NULL CHECK (refused >= 0), -- the allowance or budget; 0: it exhausted none
	PRIMARY KEY (organization, at, request)
);
CREATE INDEX refusals_at ON refusals USING brin (at);

-- How many refusals were saved for a day (UTC), and the SHA-256 of all, by exclusive or: one that is changed, added or
-- removed differs. The root of hour has the sum; refusals that come later are in another row.
CREATE TABLE refusal_days (
	organization text        NOT NULL,
	day          timestamptz NOT NULL,
	hour         timestamptz NOT NULL DEFAULT 'infinity', -- infinity: no root has it yet
	refusals     bigint      NOT NULL CHECK (refusals > 0),
	checksum     bit(256)    NOT NULL,
	saved_at     timestamptz NOT NULL, -- when the first of them was
	PRIMARY KEY (organization, day, hour)
) WITH (fillfactor = 60);
CREATE INDEX refusal_days_age ON refusal_days (greatest(day, hour)); -- by which they age
CREATE INDEX refusal_days_unsealed ON refusal_days (saved_at) WHERE hour = 'infinity';

-- What became of requests, by the hour (UTC) of acceptance, or of the tally that counted them, and the same by day. What is
-- accepted is what was charged. An empty project, key or environment: of any, where too many were in use at once.
CREATE TABLE usage_hours (
	organization text        NOT NULL,
	hour         timestamptz NOT NULL,
	project      text        NOT NULL,
	key          text        NOT NULL,
	environment  text        NOT NULL,
	outcome      text        NOT NULL,
	reason       text        NOT NULL,
	requests     bigint      NOT NULL,
	entries      bigint      NOT NULL,
	bytes        bigint      NOT NULL,
	errors       bigint      NOT NULL,
	key_in_body  bigint      NOT NULL,
	PRIMARY KEY (organization, hour, project, key, environment, outcome, reason)
) WITH (fillfactor = 60);
CREATE INDEX usage_hours_hour ON usage_hours (hour); -- by which they age

CREATE TABLE usage_days (
	organization text   NOT NULL,
	day          date   NOT NULL,
	project      text   NOT NULL,
	key          text   NOT NULL,
	environment  text   NOT NULL,
	outcome      text   NOT NULL,
	reason       text   NOT NULL,
	requests     bigint NOT NULL,
	entries      bigint NOT NULL,
	bytes        bigint NOT NULL,
	errors       bigint NOT NULL,
	key_in_body  bigint NOT NULL,
	PRIMARY KEY (organization, day, project, key, environment, outcome, reason)
) WITH (fillfactor = 60);
CREATE INDEX usage_days_day ON usage_days (day); -- by which they age, with the day of transfers

-- Up to which sequence the tallies of each process of ingest are counted.
CREATE TABLE tallies (
	organization text        NOT NULL,
	process      text        NOT NULL,
	sequence     bigint      NOT NULL,
	at           timestamptz NOT NULL, -- when the last was booked
	PRIMARY KEY (organization, process)
) WITH (fillfactor = 60);
CREATE INDEX tallies_at ON tallies USING brin (at);

-- What was answered to a request with an Idempotency-Key: key and input are hashes.
CREATE TABLE answers (
	organization text        NOT NULL,
	key          bytea       NOT NULL,
	input        bytea       NOT NULL,
	answer       jsonb       NOT NULL,
	answered_at  timestamptz NOT NULL,
	PRIMARY KEY (organization, key)
);

-- The rules of the installation, by the settings of the process that started last. Decisions keep what they were made with;
-- a changed rule is a decision about each organization that it concerns.
CREATE TABLE terms (
	one_row boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one_row),
	version bigint  NOT NULL CHECK (version > 0),
	rules   jsonb   NOT NULL,
	kept    jsonb,                      -- for how many months: {"hours": n, "transfers": n, "books": n}
	hash    bytea   NOT NULL DEFAULT '' -- SHA-256 of the rest: a change that no process has recorded is found
);

-- Whose state on weir.accounts.v1 is behind. A version is never used twice and grows with every change. The first is the
-- time in microseconds, so that a recreated schema begins above all that anyone has read of the old one.
CREATE SEQUENCE versions;
SELECT setval('versions', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
CREATE TABLE unpublished (
	organization text   NOT NULL PRIMARY KEY,
	version      bigint NOT NULL
) WITH (fillfactor = 60);

-- Which range of a partition of weir.logs.v1 each transaction applied, and what it made of it: the basis of the check that
-- the ledger's bytes are the log's bytes. It holds sums over organizations, nothing of any one.
CREATE TABLE ranges (
	partition      int         NOT NULL,
	first_offset   bigint      NOT NULL,
	next_offset    bigint      NOT NULL CHECK (next_offset > first_offset),
	records        int         NOT NULL,
	charged        int         NOT NULL,
	bytes          bigint      NOT NULL, -- of all records
	charged_bytes  bigint      NOT NULL, -- of those that were charged, without duplicates and replays
	effective_from timestamptz NOT NULL,
	effective_to   timestamptz NOT NULL,
	booked_from    timestamptz NOT NULL, -- and, of joined ranges, to booked_at
	booked_at      timestamptz NOT NULL,
	checksum       bigint, -- sum of the checksums of all records: one exchanged for another of the same size is found; null: not known
	PRIMARY KEY (partition, first_offset)
);
CREATE INDEX ranges_booked ON ranges (partition, booked_at);

-- Through which offset the ranges of each partition are checked, by any replica: the one that checks some locks the row.
CREATE TABLE checked_ranges (
	partition int    NOT NULL PRIMARY KEY,
	next      bigint NOT NULL CHECK (next >= 0)
) WITH (fillfactor = 50);

-- What was charged and decided in an hour of the log, by organization, each link with the hash of the one before: see
-- ledger.Link.
CREATE TABLE links (
	organization text        NOT NULL,
	sequence     bigint      NOT NULL CHECK (sequence > 0),
	hour         timestamptz NOT NULL,
	charges      bigint      NOT NULL,
	bytes        bigint      NOT NULL,
	charged      bytea       NOT NULL,
	decisions    bigint      NOT NULL,
	decided      bytea       NOT NULL,
	previous     bytea       NOT NULL,
	hash         bytea       NOT NULL,
	PRIMARY KEY (organization, sequence)
);
CREATE INDEX links_hour ON links (hour); -- by which they age

-- The last link of each organization, kept even when the link is not.
CREATE TABLE chains (
	organization text        NOT NULL PRIMARY KEY,
	sequence     bigint      NOT NULL,
	hour         timestamptz NOT NULL,
	decisions    bigint      NOT NULL,
	hash         bytea       NOT NULL
) WITH (fillfactor = 60);

-- Where each hour of the log ends in each partition: before the first charge that was accepted later or, if there was none
-- in time, after all that was booked.
CREATE TABLE cuts (
	partition   int         NOT NULL,
	hour        timestamptz NOT NULL,
	next_offset bigint      NOT NULL,
	PRIMARY KEY (partition, hour)
);

-- The hours that are cut, and the root of all chains at their end; null while their links are not written.
CREATE TABLE seals (
	hour          timestamptz NOT NULL PRIMARY KEY,
	organizations bigint,
	root          bytea,
	sealed_at     timestamptz,
	checkpoint    bytea, -- the checkpoint in the root; null: none was taken then
	refused       bytea  -- SHA-256 of the sums of refusals in the root; null: nothing was refused
);

-- Charges that were booked before an existing cut, because they had been parked, and the hour that has them.
CREATE TABLE replays (
	partition int         NOT NULL,
	"offset"  bigint      NOT NULL,
	booked_at timestamptz NOT NULL,
	hour      timestamptz,
	PRIMARY KEY (partition, "offset")
);

-- What books were at positions of the log and after a decision, taken when the hour was sealed: the root of the hour has
-- the hash. A rebuild begins there if the log or the decisions no longer reach back further.
CREATE TABLE checkpoints (
	hour      timestamptz NOT NULL PRIMARY KEY,
	topic_id  uuid        NOT NULL,
	positions jsonb       NOT NULL, -- {"partition": next offset, …}
	decision  bigint      NOT NULL, -- position of the last in events
	hash      bytea       NOT NULL
);

-- Rows of an organization in a table, as JSON; null once the organization is erased. hash is the SHA-256 of its text.
CREATE TABLE checkpoint_rows (
	organization text        NOT NULL,
	hour         timestamptz NOT NULL REFERENCES checkpoints ON DELETE CASCADE,
	kind         text        NOT NULL, -- the table
	content      jsonb,
	hash         bytea       NOT NULL,
	PRIMARY KEY (organization, hour, kind)
);
CREATE INDEX checkpoint_rows_hour ON checkpoint_rows (hour);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['organizations', 'books', 'transfers', 'folded_transfers', 'grants', 'budgets', 'period_lines', 'statements', 'refusals',
		'refusal_days', 'usage_hours', 'usage_days', 'tallies', 'answers', 'unpublished', 'links', 'chains', 'checkpoint_rows'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
