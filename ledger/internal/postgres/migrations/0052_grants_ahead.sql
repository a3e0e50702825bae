-- What of a grant with a rollover cap went in later periods than the earliest that is open, [{"start": instant, "bytes": number}, ...].
ALTER TABLE grants ADD COLUMN ahead jsonb NOT NULL DEFAULT '[]';
