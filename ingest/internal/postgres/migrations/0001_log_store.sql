-- A block holds entries of one project, compressed. The columns beside the data let a search pass a block without
-- reading it. Partitioned by the day of receipt (UTC): consumers copy straight into a day, retention drops whole days.
CREATE TABLE blocks (
	organization text        NOT NULL CHECK (organization <> ''),
	project      text        NOT NULL,
	received_at  timestamptz NOT NULL, -- of the latest entry
	block        uuid        NOT NULL,
	min_seconds  bigint      NOT NULL, -- event times of the first and last entry; timestamptz would lose nanoseconds
	min_nanos    int         NOT NULL,
	max_seconds  bigint      NOT NULL,
	max_nanos    int         NOT NULL,
	levels       smallint    NOT NULL, -- bit n: holds an entry of level n
	entries      int         NOT NULL,
	text_bytes   int         NOT NULL, -- of the entries, uncompressed
	words        bytea       NOT NULL, -- which words its messages can hold
	data         bytea       NOT NULL, -- zstd of the entries
	PRIMARY KEY (organization, project, received_at, block),
	CHECK ((min_seconds, min_nanos) <= (max_seconds, max_nanos))
) PARTITION BY RANGE (received_at);

-- Compressed already: toast would try in vain.
ALTER TABLE blocks ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE blocks ALTER COLUMN words SET STORAGE EXTERNAL;

-- One index for each order of a search; it knows the other end of a block's span as well.
CREATE INDEX blocks_newest ON blocks (organization, max_seconds DESC, max_nanos DESC, project, min_seconds);
CREATE INDEX blocks_oldest ON blocks (organization, min_seconds, min_nanos, project, max_seconds);

ALTER TABLE blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON blocks USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
