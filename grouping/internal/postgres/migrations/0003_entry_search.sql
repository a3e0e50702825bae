-- By what the log entries of a group are found: see EntrySearch in the domain. An empty text alone stands for any type.
ALTER TABLE error_groups ADD entry_types text[] NOT NULL DEFAULT '{""}';
ALTER TABLE error_groups ADD last_entry timestamptz NOT NULL DEFAULT 'epoch'; -- the latest time that an entry names, which may be after its acceptance
