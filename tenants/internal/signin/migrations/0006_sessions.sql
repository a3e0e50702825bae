-- Where and how a session was started, and where it was last renewed: so that its member recognizes it, or does not.
ALTER TABLE sessions
    ADD COLUMN method  text NOT NULL DEFAULT '',
    ADD COLUMN address text NOT NULL DEFAULT '',
    ADD COLUMN client  text NOT NULL DEFAULT '',
    ADD COLUMN used_at timestamptz, -- when it was last started, renewed or confirmed; null: when it was started
    ADD COLUMN ended_at timestamptz, -- null: was not ended
    ADD COLUMN end_reason text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX sessions_by_id ON sessions (id);
