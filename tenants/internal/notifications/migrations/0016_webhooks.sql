-- Endpoints that facts are sent to, and what was or is to be sent. The secrets of endpoints are in neither: see decision 34.

CREATE TABLE webhooks (
    organization        text        NOT NULL REFERENCES organizations,
    id                  text        NOT NULL,
    url                 text        NOT NULL,
    events              text[]      NOT NULL,
    key                 text        NOT NULL, -- id of the key that the secret follows from
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

-- The key to organizations keeps what is late from coming behind a deletion.
CREATE TABLE deliveries (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL, -- follows from the fact and from whom it is for
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
    PRIMARY KEY (organization, id)
);
CREATE INDEX deliveries_due ON deliveries (organization, next_at) WHERE state = 'pending';
CREATE INDEX deliveries_by_age ON deliveries (organization, webhook, created_at, id);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhooks', 'deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;
