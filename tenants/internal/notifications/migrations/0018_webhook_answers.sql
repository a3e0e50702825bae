-- What was answered to a request that brought an Idempotency-Key: key and input are hashes. No answer has a secret.
CREATE TABLE webhook_answers (
    organization text        NOT NULL REFERENCES organizations,
    key          bytea       NOT NULL,
    input        bytea       NOT NULL,
    answer       jsonb       NOT NULL,
    answered_at  timestamptz NOT NULL,
    PRIMARY KEY (organization, key)
);

ALTER TABLE webhook_answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_answers FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_answers_of_organization ON webhook_answers USING (organization = current_setting('weir.organization', true)
    OR current_setting('weir.organization', true) = '*');
