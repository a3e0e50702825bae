-- Owners may let members sign in by passkeys and the identity provider alone.
ALTER TABLE security_policies ADD COLUMN passwords_off boolean NOT NULL DEFAULT false;
