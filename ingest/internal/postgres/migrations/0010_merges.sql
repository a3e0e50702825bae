-- Small blocks are merged into larger ones.
CREATE INDEX small_blocks_by_receipt ON blocks (organization, project, received_at) WHERE text_bytes < 65536;

-- Where small blocks lie that may be merged: a row for each project and day until there are none.
CREATE TABLE small_blocks (
	organization text        NOT NULL CHECK (organization <> ''),
	project      text        NOT NULL,
	retention    smallint    NOT NULL,
	day          date        NOT NULL, -- of receipt
	due_at       timestamptz NOT NULL, -- when they are looked at
	PRIMARY KEY (organization, project, retention, day)
) WITH (fillfactor = 50); -- due_at changes all the time, in place
ALTER TABLE small_blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE small_blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON small_blocks USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- How many merges there were. The row is locked until a merge commits: who sees a number sees all merges up to it, and none behind.
CREATE TABLE merge_counts (
	organization text   NOT NULL PRIMARY KEY CHECK (organization <> ''),
	merges       bigint NOT NULL
);
ALTER TABLE merge_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE merge_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON merge_counts USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- What the latest merges have written, for the pages of a search that have passed blocks which are gone.
CREATE TABLE merged_blocks (
	organization text        NOT NULL CHECK (organization <> ''),
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
ALTER TABLE merged_blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE merged_blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON merged_blocks USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
