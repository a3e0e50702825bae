-- marks are records that the relay has published, the newest last: it compares them with the log (see ADR 7). lost_at, lost and republished are for
-- people: when it last found that a log had lost something, what, and how many messages it has published again since ever.
ALTER TABLE bus_relays
	ADD COLUMN marks       jsonb  NOT NULL DEFAULT '[]',
	ADD COLUMN lost_at     timestamptz,
	ADD COLUMN lost        text   NOT NULL DEFAULT '',
	ADD COLUMN republished bigint NOT NULL DEFAULT 0;
