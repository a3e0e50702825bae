-- Which topic a position belongs to: one that is deleted and made again has another id. NULL: not known yet, or cleared by a
-- person; whoever claims the position next writes it down.
ALTER TABLE bus_positions ADD COLUMN topic_id uuid;
