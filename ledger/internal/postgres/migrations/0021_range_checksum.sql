-- The sum of the checksums of all records: a record that was exchanged for another of the same size is found as well. NULL: not known.
ALTER TABLE ranges ADD COLUMN checksum bigint;
