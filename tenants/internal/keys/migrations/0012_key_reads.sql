-- How often a key was used to read, and how often since it was rotated. What was read before is not known.
ALTER TABLE api_key_usage
    ADD COLUMN read       bigint NOT NULL DEFAULT 0,
    ADD COLUMN read_since bigint NOT NULL DEFAULT 0;
