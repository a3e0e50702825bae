-- Outboxes are in the order of their positions by now; see decision 9. The outbox's own files still read the column, so this set goes behind them.
ALTER TABLE bus_relays DROP COLUMN transaction;
