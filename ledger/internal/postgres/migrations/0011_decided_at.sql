-- The instant of the last decision about the organization: no later one has an earlier instant, whatever the clock says.
ALTER TABLE organizations ADD COLUMN decided_at timestamptz;
