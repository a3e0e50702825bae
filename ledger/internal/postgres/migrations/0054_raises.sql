-- How often the allowance of the period was raised: what an allowance of before has refused says nothing about this one. 0: not counted.
ALTER TABLE books ADD COLUMN raises bigint NOT NULL DEFAULT 0;
