-- What the bodies of a webhook's messages are like: standard or slack. Empty: as its address says.
ALTER TABLE webhooks ADD COLUMN format text NOT NULL DEFAULT '';
