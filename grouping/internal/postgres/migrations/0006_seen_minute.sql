-- Lists of groups follow seen_minute, the minute of last_seen: an update within a minute changes no column of an index, and so rewrites none (a
-- heap-only tuple). The default is for replicas of before, which do not know the column.
ALTER TABLE error_groups ADD COLUMN seen_minute timestamptz NOT NULL DEFAULT date_trunc('minute', now(), 'UTC');
