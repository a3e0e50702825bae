-- Numbers of a group's calls, the innermost first: groups are similar by the rare calls that they have in common. Groups of before have none.
ALTER TABLE error_groups ADD COLUMN calls integer[] NOT NULL DEFAULT '{}';
