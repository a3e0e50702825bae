-- A merge under way keeps its claim, whatever a writer notes in due_at.
ALTER TABLE small_blocks ADD COLUMN claimed_until timestamptz NOT NULL DEFAULT '-infinity';
