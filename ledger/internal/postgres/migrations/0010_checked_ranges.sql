-- Through which offset the ranges of each partition are checked, by whichever replica: who checks some holds the row.
CREATE TABLE checked_ranges (
	partition int    NOT NULL PRIMARY KEY,
	next      bigint NOT NULL CHECK (next >= 0)
) WITH (fillfactor = 50);
