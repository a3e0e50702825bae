-- For how many months things are kept, by the settings of the process that started last: {"hours": n, "transfers": n, "books": n}.
ALTER TABLE terms ADD COLUMN kept jsonb;
