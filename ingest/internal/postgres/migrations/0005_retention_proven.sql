-- That all blocks have the retention is what lets 0007 take their table as the partition of it without reading them.
ALTER TABLE blocks VALIDATE CONSTRAINT blocks_retention_check, VALIDATE CONSTRAINT blocks_of_before;
