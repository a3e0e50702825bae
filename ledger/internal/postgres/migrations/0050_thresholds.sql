-- The thresholds that are announced to an organization, in percent; NULL: those of the installation.
ALTER TABLE organizations ADD COLUMN thresholds int[];
