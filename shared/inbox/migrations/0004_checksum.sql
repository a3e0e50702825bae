-- What the part was, to tell a copy from another record of the same id: see contract.LogsAccepted.Checksum. NULL: not known.
ALTER TABLE inbox ADD COLUMN checksum bigint;
