-- How long a block is kept, in days. What stands was kept without a bound, so it gets the longest retention of all tiers; replicas of before go on
-- with that as well. Full tables take long only where nobody waits for it: this file and 0007 lock everybody out and read no block, 0005 lets all
-- go on, 0006 and 0008 let searches go on, and the log holds what is accepted meanwhile.
ALTER TABLE blocks ADD COLUMN retention smallint NOT NULL DEFAULT 365;
ALTER TABLE blocks ADD CONSTRAINT blocks_retention_check CHECK (retention > 0) NOT VALID,
	ADD CONSTRAINT blocks_of_before CHECK (retention = 365::smallint) NOT VALID;
