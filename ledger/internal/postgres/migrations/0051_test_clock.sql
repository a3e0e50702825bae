-- What time it is for an organization with which billing only rehearses; NULL: for all others.
ALTER TABLE organizations ADD COLUMN clock timestamptz;
