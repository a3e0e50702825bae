-- The keys of all projects of an organization, newest first.
CREATE INDEX api_keys_by_age ON api_keys (organization, created_at, id);
