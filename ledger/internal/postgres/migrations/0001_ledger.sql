-- What the ledger knows of an organization. The row is also the lock under which its books are written.
-- plans is its timeline, [{"from": instant, "tier": name}, ...]; empty as long as only its logs are known.
CREATE TABLE organizations (
	organization text        NOT NULL PRIMARY KEY,
	anchor_day   smallint    NOT NULL DEFAULT 1 CHECK (anchor_day BETWEEN 1 AND 31),
	plans        jsonb       NOT NULL DEFAULT '[]',
	suspended    boolean     NOT NULL DEFAULT false,
	opened_at    timestamptz NOT NULL
);

-- The balances of one organization and period, in bytes. The columns are accounts; what leaves one arrives at another.
CREATE TABLE books (
	organization text        NOT NULL,
	period_start timestamptz NOT NULL,
	period_end   timestamptz NOT NULL CHECK (period_end > period_start),
	issuer       bigint      NOT NULL CHECK (issuer <= 0),
	grant_left   bigint      NOT NULL CHECK (grant_left >= 0),
	consumed     bigint      NOT NULL CHECK (consumed >= 0),
	overage      bigint      NOT NULL CHECK (overage >= 0),
	reached      smallint    NOT NULL DEFAULT 0, -- the highest threshold announced, in percent
	PRIMARY KEY (organization, period_start),
	CONSTRAINT balances_sum_to_zero CHECK (issuer + grant_left + consumed + overage = 0),
	CONSTRAINT no_overage_beside_a_grant CHECK (overage = 0 OR grant_left = 0)
) WITH (fillfactor = 60);

-- Every transfer ever made, partitioned by the UTC day on which it took effect. Rows are only ever added. The numbers of
-- accounts, reasons and sources are those of the domain. (source, partition, offset) is the event that caused it. No table
-- has more rows: wide columns come first, which leaves no gaps, and the key has a hash in place of the organization.
CREATE TABLE transfers (
	effective_at timestamptz NOT NULL,
	"offset"     bigint      NOT NULL,
	period_start timestamptz NOT NULL,
	amount       bigint      NOT NULL CHECK (amount > 0),
	booked_at    timestamptz NOT NULL,
	of_period    timestamptz, -- start of the period that it makes good
	partition    int         NOT NULL,
	entries      int         NOT NULL,
	organization_hash int NOT NULL GENERATED ALWAYS AS (hashtext(organization)) STORED,
	source       smallint    NOT NULL,
	line         smallint    NOT NULL,
	from_account smallint    NOT NULL,
	to_account   smallint    NOT NULL CHECK (from_account <> to_account),
	reason       smallint    NOT NULL,
	organization text        NOT NULL,
	project      text        NOT NULL,
	key          text        NOT NULL,
	event        text        NOT NULL,
	grant_id     text        NOT NULL DEFAULT '', -- whose bytes they are
	PRIMARY KEY (organization_hash, effective_at, "offset", partition, source, line)
) PARTITION BY RANGE (effective_at);
-- Transfers of one transaction share booked_at and lie together, so a block range index finds them at almost no cost.
CREATE INDEX transfers_booked ON transfers USING brin (booked_at) WITH (pages_per_range = 32);

-- What was charged per day of acceptance (UTC) and project.
CREATE TABLE usage (
	organization text   NOT NULL,
	day          date   NOT NULL,
	project      text   NOT NULL,
	bytes        bigint NOT NULL,
	entries      bigint NOT NULL,
	errors       bigint NOT NULL,
	PRIMARY KEY (organization, day, project)
) WITH (fillfactor = 60);

-- Which stretch of a partition of weir.logs.v1 each transaction applied, and what it made of it: the ground of the check
-- that the ledger's bytes are the log's bytes. It holds sums over organizations, nothing of any one. Checked ones of a
-- few seconds are joined.
CREATE TABLE ranges (
	partition      int         NOT NULL,
	first_offset   bigint      NOT NULL,
	next_offset    bigint      NOT NULL CHECK (next_offset > first_offset),
	records        int         NOT NULL,
	charged        int         NOT NULL,
	bytes          bigint      NOT NULL, -- of all records
	charged_bytes  bigint      NOT NULL, -- of those that were charged, so without duplicates and replays
	effective_from timestamptz NOT NULL,
	effective_to   timestamptz NOT NULL,
	booked_from    timestamptz NOT NULL, -- and, of joined ranges, to booked_at
	booked_at      timestamptz NOT NULL,
	PRIMARY KEY (partition, first_offset)
);

CREATE INDEX ranges_booked ON ranges (partition, booked_at);

-- Whose state on weir.accounts.v1 is behind. A version is never used twice and grows with every change. The first is the time
-- in microseconds, so that those of a schema that was made anew are above all that anybody has read of the old one.
CREATE SEQUENCE versions;
SELECT setval('versions', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
CREATE TABLE unpublished (
	organization text   NOT NULL PRIMARY KEY,
	version      bigint NOT NULL
) WITH (fillfactor = 60);

-- With which terms of the tiers the accounts were last published: other terms publish them all again.
CREATE TABLE published_terms (
	one_row boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one_row),
	terms   jsonb   NOT NULL
);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['organizations', 'books', 'transfers', 'usage', 'unpublished'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
