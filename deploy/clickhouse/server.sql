CREATE TABLE IF NOT EXISTS weir.entries
(
	organization LowCardinality(String),
	project      LowCardinality(String),
	retention    UInt16, -- days
	day          Date, -- of receipt, in UTC
	seconds      Int64 CODEC(Delta, ZSTD), -- of the event, since 1970
	nanos        UInt32 CODEC(ZSTD),
	batch        FixedString(16) CODEC(ZSTD), -- with the number, the identity of an entry
	number       UInt32 CODEC(ZSTD),
	received     Int64 CODEC(Delta, ZSTD), -- nanoseconds since 1970
	level        UInt8 CODEC(ZSTD),
	environment  LowCardinality(String),
	text         String CODEC(ZSTD(3)), -- as it was accepted, byte for byte
	words        String CODEC(ZSTD), -- those that can't be seen in the text, because of escapes and characters beyond ASCII
	block        FixedString(16) CODEC(ZSTD), -- that it came from
	move         UInt64 CODEC(Delta, ZSTD), -- with which it came
	deadline     DateTime('UTC') CODEC(ZSTD), -- of its insert
	INDEX tokens lower(concat(text, ' ', words)) TYPE text(tokenizer = splitByNonAlpha),
	INDEX projects project TYPE set(64) GRANULARITY 1,
	INDEX moves move TYPE minmax GRANULARITY 1,
	CONSTRAINT in_time CHECK now() <= deadline -- who has lost a move can't insert it any more
)
ENGINE = MergeTree
PARTITION BY (retention, day)
ORDER BY (organization, seconds, nanos, batch, number)
TTL day + toIntervalDay(retention + 1)
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE ROLE IF NOT EXISTS weir_writer;

GRANT SELECT, INSERT, ALTER DELETE ON weir.* TO weir_writer;

GRANT SELECT ON system.mutations TO weir_writer;

CREATE ROLE IF NOT EXISTS weir_reader;

GRANT SELECT ON weir.* TO weir_reader;

CREATE ROW POLICY IF NOT EXISTS weir_writer ON weir.entries FOR SELECT USING organization = getSetting('log_comment') OR getSetting('log_comment') = '*' TO weir_writer;

CREATE ROW POLICY IF NOT EXISTS weir_reader ON weir.entries FOR SELECT USING organization = getSetting('log_comment') TO weir_reader;
