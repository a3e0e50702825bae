-- When attempts were last reported that had been refused: the first of an hour is not to wait for the report about wrong passwords before it.
ALTER TABLE sign_in_failures ADD COLUMN refusals_reported_at timestamptz; -- null: never
