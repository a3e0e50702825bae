-- Endpoints that facts are sent to. Their secrets are derived from a key and a generation, and stored nowhere.
CREATE TABLE webhooks (
    organization        text        NOT NULL REFERENCES organizations,
    id                  text        NOT NULL,
    url                 text        NOT NULL,
    events              text[]      NOT NULL,
    key                 text        NOT NULL, -- id of the key that the secret is derived from
    generation          integer     NOT NULL,
    previous_key        text        NOT NULL DEFAULT '',
    previous_generation integer     NOT NULL DEFAULT 0,
    previous_ends       timestamptz,          -- null: there was none
    created_at          timestamptz NOT NULL,
    off_at              timestamptz,          -- null: it is on
    off_reason          text        NOT NULL DEFAULT '',
    taken_at            timestamptz,          -- when it last took something; of the deliveries, not of the events
    PRIMARY KEY (organization, id)
);
CREATE INDEX webhooks_by_age ON webhooks (organization, created_at, id);

-- What was or is to be sent, to a webhook or by mail to a member. The key to organizations keeps late facts from coming
-- back after a deletion.
CREATE TABLE deliveries (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL, -- derived from the fact and its receiver
    webhook      text        NOT NULL,
    project      text        NOT NULL, -- '': the fact is of none
    type         text        NOT NULL,
    body         text        NOT NULL, -- as it is signed and sent
    created_at   timestamptz NOT NULL,
    state        text        NOT NULL CHECK (state IN ('pending', 'taken', 'failed')),
    begun_at     timestamptz NOT NULL, -- its creation, or when it was last sent again
    next_at      timestamptz NOT NULL, -- of the next attempt; while one is under way, when it counts as lost
    attempts     integer     NOT NULL DEFAULT 0,
    attempted_at timestamptz,
    status       integer     NOT NULL DEFAULT 0, -- of the last attempt; 0: no answer
    answer       text        NOT NULL DEFAULT '',
    failure      text        NOT NULL DEFAULT '', -- why there was no answer, or no attempt
    member       text        NOT NULL DEFAULT '', -- '': it goes to the webhook
    PRIMARY KEY (organization, id)
);
-- By project, so that what is hidden with one is skipped at once.
CREATE INDEX deliveries_due_by_project ON deliveries (organization, project, next_at) WHERE state = 'pending';
CREATE INDEX deliveries_by_age ON deliveries (organization, webhook, created_at, id);

-- What was answered to a request with an Idempotency-Key: key and input are hashes. No answer contains a secret.
CREATE TABLE webhook_answers (
    organization text        NOT NULL REFERENCES organizations,
    key          bytea       NOT NULL,
    input        bytea       NOT NULL,
    answer       jsonb       NOT NULL,
    answered_at  timestamptz NOT NULL,
    PRIMARY KEY (organization, key)
);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhooks', 'deliveries', 'webhook_answers'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;
