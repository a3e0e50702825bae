-- Claims used to be made with the first part of a request, whether or not the others came: whole is not known of those that are there.
ALTER TABLE inbox_idempotency ADD COLUMN whole boolean NOT NULL DEFAULT false;
