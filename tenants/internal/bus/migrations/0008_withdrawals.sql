-- Records that withdraw what was published of what is deleted. A relay publishes them; then they go.
CREATE TABLE withdrawals (
    organization text   NOT NULL CHECK (organization <> ''),
    position     bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    topic        text   NOT NULL,
    key          text   NOT NULL,
    type         text   NOT NULL,
    value        text,  -- null: a tombstone
    PRIMARY KEY (organization, position)
);
CREATE UNIQUE INDEX withdrawals_in_order ON withdrawals (position);

ALTER TABLE withdrawals ENABLE ROW LEVEL SECURITY;
ALTER TABLE withdrawals FORCE ROW LEVEL SECURITY;
CREATE POLICY withdrawals_of_organization ON withdrawals
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
