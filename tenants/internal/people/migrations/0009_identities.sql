-- Who a member is at the identity provider. It stays theirs whatever becomes of their e-mail address there.
ALTER TABLE members
    ADD COLUMN identity_issuer  text NOT NULL DEFAULT '', -- '': none has told yet
    ADD COLUMN identity_subject text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX members_by_identity ON members (identity_issuer, identity_subject) WHERE identity_issuer <> '';
