-- What an API key may read: full, project or write. Keys of before read all of their organization.
ALTER TABLE api_keys
    ADD COLUMN access text NOT NULL DEFAULT 'full';
