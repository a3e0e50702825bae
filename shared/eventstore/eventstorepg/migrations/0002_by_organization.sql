-- The events of one organization in the order of commits.
CREATE INDEX events_by_organization ON events (organization, position);
