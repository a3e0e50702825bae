-- A version of the algorithm finds groups of the one before, and its deciding hashes lead to them from then on: they go with their group.
CREATE INDEX IF NOT EXISTS group_hashes_inherited ON group_hashes (organization, error_group) WHERE level = 'inherited';
