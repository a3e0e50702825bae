{{- define "columns"}}
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
{{- end -}}
{{- define "storage"}}
PARTITION BY (retention, day)
ORDER BY (organization, seconds, nanos, batch, number)
TTL day + toIntervalDay(retention + 1){{if .Cold}}, day + toIntervalDay({{.Cold}}) TO VOLUME 'cold'{{end}}
{{- end -}}
{{- if .Cluster -}}
CREATE TABLE IF NOT EXISTS {{.Database}}.entries_local ON CLUSTER '{{.Cluster}}'
{{- template "columns"}}
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{{.Database}}/entries', '{replica}')
{{- template "storage" .}}
SETTINGS replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1
{{- if .Policy}}, storage_policy = '{{.Policy}}'{{end}};

CREATE TABLE IF NOT EXISTS {{.Database}}.entries ON CLUSTER '{{.Cluster}}' AS {{.Database}}.entries_local
ENGINE = Distributed('{{.Cluster}}', '{{.Database}}', 'entries_local', cityHash64(organization, project));
{{else -}}
CREATE TABLE IF NOT EXISTS {{.Database}}.entries
{{- template "columns"}}
ENGINE = MergeTree
{{- template "storage" .}}
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1
{{- if .Policy}}, storage_policy = '{{.Policy}}'{{end}};
{{end -}}
