-- The number of the decision that made the grant, with which it is compared.
ALTER TABLE grants ADD COLUMN decision bigint NOT NULL DEFAULT 0;
