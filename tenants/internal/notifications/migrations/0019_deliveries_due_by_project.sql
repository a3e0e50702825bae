-- What waits is looked up by project, so that what is hidden of one is passed over at once.
CREATE INDEX deliveries_due_by_project ON deliveries (organization, project, next_at) WHERE state = 'pending';
DROP INDEX deliveries_due;
