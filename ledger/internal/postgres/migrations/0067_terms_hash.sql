-- The SHA-256 of the version, the rules and what is kept, by which a change is found that no process has recorded.
ALTER TABLE terms ADD COLUMN hash bytea NOT NULL DEFAULT '';
UPDATE terms SET hash = sha256(convert_to(jsonb_build_array(version, rules, kept)::text, 'UTF8'));
