-- What the transfers came to whose days are gone, by organization, period and kind: with those that are left they are the book. They go
-- with it.
CREATE TABLE folded_transfers (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	period_start timestamptz NOT NULL,
	source       smallint    NOT NULL,
	reason       smallint    NOT NULL,
	from_account smallint    NOT NULL,
	to_account   smallint    NOT NULL CHECK (from_account <> to_account),
	amount       bigint      NOT NULL CHECK (amount > 0),
	entries      bigint      NOT NULL,
	transfers    bigint      NOT NULL CHECK (transfers > 0), -- how many they were
	PRIMARY KEY (organization, period_start, source, reason, from_account, to_account),
	FOREIGN KEY (organization, period_start) REFERENCES books (organization, period_start) ON DELETE CASCADE
);
ALTER TABLE folded_transfers ENABLE ROW LEVEL SECURITY;
ALTER TABLE folded_transfers FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON folded_transfers USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
