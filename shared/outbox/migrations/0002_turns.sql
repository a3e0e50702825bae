-- Whoever writes facts takes a turn, from before the first position is drawn until the commit: so positions are the order of commits, and
-- no other transaction of the server holds a relay back. The database sees to it, for processes of before this migration as well.
CREATE FUNCTION facts_take_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtextextended('weir facts ' || TG_TABLE_SCHEMA, 0));
	RETURN NULL;
END $$;
CREATE TRIGGER facts_take_turn BEFORE INSERT ON facts FOR EACH STATEMENT EXECUTE FUNCTION facts_take_turn();

-- Until now facts went by transaction: one that was not published yet may have a lower position than the last one that was. What follows it is
-- published again, under the same ids. A relay of before may have a page under way that leaves it out, so its lease ends.
SELECT set_config('weir.organization', '*', true);
UPDATE bus_relays AS r SET owner = '', expires_at = '-infinity', epoch = epoch + 1, transaction = 0, position = least(r.position, (SELECT min(f.position) - 1 FROM facts AS f
	WHERE (f.transaction, f.position) > (r.transaction::text::xid8, r.position)));
SELECT set_config('weir.organization', '', true);

DROP INDEX facts_relay;
ALTER TABLE facts DROP COLUMN transaction;
CREATE UNIQUE INDEX facts_relay ON facts (position);
