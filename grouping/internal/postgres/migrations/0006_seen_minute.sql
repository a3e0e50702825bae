-- Lists of groups follow seen_minute, the minute of last_seen: an update within a minute changes no column of an index, and so rewrites none (a
-- heap-only tuple).
ALTER TABLE error_groups ADD COLUMN seen_minute timestamptz NOT NULL DEFAULT date_trunc('minute', now(), 'UTC');

-- Replicas of before do not know the column: while they run beside those of now, it is kept for them.
CREATE FUNCTION keep_seen_minute() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.seen_minute := date_trunc('minute', NEW.last_seen, 'UTC');
	RETURN NEW;
END $$;
CREATE TRIGGER error_groups_seen_minute BEFORE INSERT OR UPDATE ON error_groups FOR EACH ROW
	WHEN (NEW.seen_minute <> date_trunc('minute', NEW.last_seen, 'UTC')) EXECUTE FUNCTION keep_seen_minute();
