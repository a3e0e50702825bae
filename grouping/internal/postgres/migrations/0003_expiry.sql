-- From which day (UTC) on a group goes with all that belongs to it: some time after the entries that were last seen of it are gone from the log
-- store. Of groups of before it is not known; they stay as long as any would.
ALTER TABLE error_groups ADD COLUMN expires date NOT NULL DEFAULT current_date + 396;
ALTER TABLE error_groups ALTER COLUMN expires DROP DEFAULT;
