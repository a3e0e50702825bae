-- What signs the cursors of the module's lists. Random ids have 122 random bits each.
CREATE TABLE cursor_key (
	one boolean PRIMARY KEY DEFAULT true CHECK (one), -- there is one row
	key bytea   NOT NULL
);
INSERT INTO cursor_key (key) SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
