-- A block holds entries of one project, compressed. The columns beside the data let a search skip a block without reading
-- it. Partitioned by retention and by day of receipt (UTC): consumers copy straight into a day, retention drops whole days.
CREATE TABLE blocks (
	organization text        NOT NULL,
	project      text        NOT NULL,
	received_at  timestamptz NOT NULL, -- of the latest entry
	block        uuid        NOT NULL,
	min_seconds  bigint      NOT NULL, -- event times of the first and last entry; timestamptz would lose nanoseconds
	min_nanos    int         NOT NULL,
	max_seconds  bigint      NOT NULL,
	max_nanos    int         NOT NULL,
	levels       smallint    NOT NULL, -- bit n: holds an entry of level n
	entries      int[]       NOT NULL, -- how many of each level, from level 0 on
	text_bytes   int         NOT NULL, -- of the entries, uncompressed
	words        bytea       NOT NULL, -- which words and values its entries can hold
	words_lack   boolean     NOT NULL, -- values of an entry with very many
	directory    bytea       NOT NULL, -- zstd of the entries' times, levels, environments and lengths
	columns      bytea       NOT NULL, -- zstd of the values of frequent fields; empty: it has none
	texts        bytea       NOT NULL, -- zstd of their texts; empty: they lie in an object
	object       uuid,
	object_at    bigint,               -- where in it
	object_bytes int,
	retention    smallint    NOT NULL CHECK (retention > 0), -- days
	environments bigint      NOT NULL, -- which environments its entries can be of, one of 64 bits each
	bundle       uuid,                 -- the newest block of its bundle, which has the columns below; null: it is in none
	bundled      smallint,             -- how many blocks the bundle has, all of which are there; null: another block says it, or some are gone
	bundle_header bytea,               -- their begin, size, environments and number of entries of each level
	bundle_words bytea,                -- which words and values they can hold; null: the block is alone
	summary      bytea,                -- zstd of how many entries of the bundle have each value of frequent fields
	PRIMARY KEY (organization, project, received_at, block, retention),
	CHECK ((min_seconds, min_nanos) <= (max_seconds, max_nanos))
) PARTITION BY LIST (retention);

-- Compressed already: toast would try in vain.
ALTER TABLE blocks ALTER COLUMN directory SET STORAGE EXTERNAL;
ALTER TABLE blocks ALTER COLUMN columns SET STORAGE EXTERNAL;
ALTER TABLE blocks ALTER COLUMN texts SET STORAGE EXTERNAL;
ALTER TABLE blocks ALTER COLUMN words SET STORAGE EXTERNAL;
ALTER TABLE blocks ALTER COLUMN bundle_words SET STORAGE EXTERNAL;
ALTER TABLE blocks ALTER COLUMN summary SET STORAGE EXTERNAL;

-- A search goes through blocks in the order of one end of their spans, then of their ids, so that it can stop at any block
-- and continue after it.
CREATE INDEX blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block);
CREATE INDEX blocks_of_project_by_end ON blocks (organization, project, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_of_project_by_begin ON blocks (organization, project, min_seconds, min_nanos, block);

-- Only blocks that span more than an hour can overlap a time that is further than an hour from their ends.
CREATE INDEX wide_blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC) WHERE max_seconds - min_seconds > 3600;
CREATE INDEX wide_blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block) WHERE max_seconds - min_seconds > 3600;

-- A count and a search for words go through bundles first.
CREATE INDEX bundles_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC) WHERE bundled IS NOT NULL;
CREATE INDEX bundles_of_project_by_end ON blocks (organization, project, max_seconds DESC, max_nanos DESC, block DESC) WHERE bundled IS NOT NULL;

-- And then through the blocks of those that may have what it looks for, which are mostly few, and the blocks in none.
CREATE INDEX unbundled_blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC) WHERE bundle IS NULL;
CREATE INDEX unbundled_blocks_of_project_by_end ON blocks (organization, project, max_seconds DESC, max_nanos DESC, block DESC) WHERE bundle IS NULL;

-- What merges look for: few blocks of each project and day.
CREATE INDEX small_blocks_by_receipt ON blocks (organization, project, received_at) WHERE text_bytes < 65536;

-- In which partitions an organization has blocks, and the event times within which they lie: a search opens no other
-- partition. Rows are only ever added, with rounded bounds, so that a day takes a few of them; they go with their partition.
CREATE TABLE block_days (
	organization text     NOT NULL,
	retention    smallint NOT NULL,
	day          date     NOT NULL, -- of receipt
	wide         boolean  NOT NULL, -- blocks of more than an hour, or others
	from_seconds bigint   NOT NULL, -- no event time is earlier
	to_seconds   bigint   NOT NULL, -- no event time is a second or more later
	PRIMARY KEY (organization, retention, day, wide, from_seconds, to_seconds)
);

-- Where small blocks lie that may be merged: a row for each project and day until there are none.
CREATE TABLE small_blocks (
	organization  text        NOT NULL,
	project       text        NOT NULL,
	retention     smallint    NOT NULL,
	day           date        NOT NULL, -- of receipt
	due_at        timestamptz NOT NULL, -- when a merge looks at them
	claimed_until timestamptz NOT NULL DEFAULT '-infinity', -- a running merge keeps its claim, whatever due_at becomes
	PRIMARY KEY (organization, project, retention, day)
) WITH (fillfactor = 50); -- due_at changes all the time, in place

-- How many merges there were. The row is locked until a merge commits: a reader that sees a number sees all merges up to
-- it, and none after it.
CREATE TABLE merge_counts (
	organization text   NOT NULL PRIMARY KEY,
	merges       bigint NOT NULL
);

-- What the latest merges have written, for the pages of a search that have passed blocks which are gone.
CREATE TABLE merged_blocks (
	organization text        NOT NULL,
	merge        bigint      NOT NULL,
	block        uuid        NOT NULL,
	project      text        NOT NULL,
	retention    smallint    NOT NULL,
	received_at  timestamptz NOT NULL,
	min_seconds  bigint      NOT NULL,
	min_nanos    int         NOT NULL,
	max_seconds  bigint      NOT NULL,
	max_nanos    int         NOT NULL,
	merged_at    timestamptz NOT NULL,
	PRIMARY KEY (organization, merge, block)
);

-- Objects outside of the database, each with texts of a project and day. A row is there before its object.
CREATE TABLE objects (
	organization text        NOT NULL,
	project      text        NOT NULL,
	retention    smallint    NOT NULL,
	day          date        NOT NULL, -- of receipt
	object       uuid        NOT NULL, -- its name
	created_at   timestamptz NOT NULL,
	used         boolean     NOT NULL DEFAULT false, -- blocks name it
	bytes        bigint      NOT NULL DEFAULT 0,
	PRIMARY KEY (organization, object)
);

-- Objects that are deleted again, as they may have been written at that moment.
CREATE TABLE deleted_objects (
	object     uuid        NOT NULL PRIMARY KEY,
	deleted_at timestamptz NOT NULL
);
-- Blocks on their way to ClickHouse, and back. A row of ClickHouse has the number of its move: it counts if that is at most
-- move_state.moves, and not here. All others are of blocks that are here as well.
CREATE TABLE moves (
	move          bigint      NOT NULL PRIMARY KEY,
	retention     smallint    NOT NULL,
	day           date        NOT NULL, -- of receipt: all blocks of a move are of one partition
	returned      boolean     NOT NULL, -- its entries are blocks again, and are to be deleted in ClickHouse
	attempt       int         NOT NULL, -- who works on it, fenced: each takes the next number
	begun_at      timestamptz NOT NULL,
	claimed_until timestamptz NOT NULL
);
CREATE TABLE moving_blocks (
	organization text        NOT NULL,
	block        uuid        NOT NULL,
	move         bigint      NOT NULL,
	project      text        NOT NULL,
	received_at  timestamptz NOT NULL,
	entries      bigint      NOT NULL,
	PRIMARY KEY (organization, block)
);
CREATE INDEX moving_blocks_of_move ON moving_blocks (move);

-- One row: the number of the last move, which is locked while a move begins, and which store the history goes to.
CREATE TABLE move_state (
	only_row boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (only_row),
	moves    bigint  NOT NULL,
	emptied  bigint  NOT NULL, -- ClickHouse has nothing of the moves up to this one
	store    text    NOT NULL CHECK (store IN ('clickhouse', 'postgres'))
);
INSERT INTO move_state (moves, emptied, store) VALUES (0, 0, 'clickhouse');

-- Sums of what the ledger has not counted for long, so that a start need not read it from weir.logs.v1. A run is one or
-- more neighbouring stretches of 32,768 offsets that lie wholly in the log; it goes once the ledger has counted it.
CREATE TABLE gap_runs (
	topic     uuid   NOT NULL,
	partition int    NOT NULL,
	first     bigint NOT NULL, -- stretch
	after     bigint NOT NULL CHECK (after > first), -- the stretch after the last
	PRIMARY KEY (topic, partition, first)
);
CREATE TABLE gap_charges (
	organization text   NOT NULL,
	topic        uuid   NOT NULL,
	partition    int    NOT NULL,
	first        bigint NOT NULL,
	day          date   NOT NULL, -- of acceptance
	bytes        bigint NOT NULL,
	PRIMARY KEY (organization, topic, partition, first, day)
);
CREATE INDEX gap_charges_run ON gap_charges (topic, partition, first);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['blocks', 'block_days', 'small_blocks', 'merge_counts', 'merged_blocks', 'objects', 'moving_blocks', 'gap_charges'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
