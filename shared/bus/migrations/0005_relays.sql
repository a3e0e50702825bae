-- Outboxes are in the order of their positions by now; see decision 9.
COMMENT ON COLUMN bus_relays.transaction IS 'no longer used';
