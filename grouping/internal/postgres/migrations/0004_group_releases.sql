-- The releases in which a group was seen, in the order in which they came, without all but the last ones: see MaxGroupReleases
-- in the domain. No index has them, so that most updates stay heap-only.
ALTER TABLE error_groups ADD COLUMN releases text[] NOT NULL DEFAULT '{}';
