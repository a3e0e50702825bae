-- Which environments a block's entries can be of, as one of 64 bits each, so that a search for another one need not unpack it. 0: of before, not known.
-- Nothing is rewritten, and processes of before go on without the column.
ALTER TABLE blocks ADD COLUMN environments bigint NOT NULL DEFAULT 0;
